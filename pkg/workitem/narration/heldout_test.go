package narration_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workitem/narration"
)

// TestNarrationInHeldOutArtifacts reports precision and recall on 200
// artifacts that were written and labelled without knowledge of the check, and
// that were not used while it was written. A change of the check for one of them needs
// a new held-out set: use testdata/dev.jsonl to develop.
func TestNarrationInHeldOutArtifacts(t *testing.T) {
	read := func(name string, each func(line []byte) error) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if err := each(lines.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := map[string]string{} // a second text that may as well remain
	read("testdata/heldout-alternatives.jsonl", func(line []byte) error {
		var a struct {
			ID       string `json:"id"`
			Stripped string `json:"stripped"`
		}
		err := json.Unmarshal(line, &a)
		other[a.ID] = a.Stripped
		return err
	})
	var found, missed, wrong, level, text, total int
	read("testdata/heldout.jsonl", func(line []byte) error {
		var a struct{ ID, Content, Level, Stripped, Note string }
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		total++
		got, stripped, why := narration.Check(a.Content)
		switch contaminated := a.Level != "CLEAN"; {
		case contaminated && got == narration.Clean:
			missed++
			t.Logf("%s missed (%s)", a.ID, a.Note)
		case !contaminated && got != narration.Clean:
			wrong++
			t.Logf("%s is clean (%s) and was found %s: %s", a.ID, a.Note, got, why)
		case contaminated:
			found++
			if got.String() != a.Level {
				level++
			} else if got == narration.Light && stripped != a.Stripped && stripped != other[a.ID] {
				text++
			}
		}
		return nil
	})
	precision, recall := float64(found)/float64(found+wrong), float64(found)/float64(found+missed)
	t.Logf("%d artifacts: precision %.3f, recall %.3f; of those found, %d at another level, %d stripped otherwise", total, precision, recall, level, text)
	if total != 200 || precision < 0.95 || recall < 0.85 {
		t.Errorf("precision %.3f (at least 0.95), recall %.3f (at least 0.85) on %d artifacts", precision, recall, total)
	}
}
