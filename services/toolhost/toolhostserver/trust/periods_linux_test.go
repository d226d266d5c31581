package trust_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// TestPeriodsAreNotForgotten: a file that was changed in the first of many periods waits, and one that is older than all
// of them does not.
func TestPeriodsAreNotForgotten(t *testing.T) {
	t.Parallel()
	store := trust.Open(t.TempDir())
	for name, first := range map[string]time.Time{"in the first": time.Now().Add(-time.Minute), "older": time.Now().Add(time.Hour)} {
		workspace := t.TempDir()
		file := filepath.Join(workspace, "checks.txt")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		at, length := first, 2*time.Minute
		p := store.Periods(workspace)
		for range 4096 + 100 {
			if err := p.Start(at); err != nil {
				t.Fatal(err)
			}
			if err := p.End(at.Add(length)); err != nil {
				t.Fatal(err)
			}
			at, length = at.Add(length+time.Minute), time.Second
		}
		p.Close()
		if _, waits := store.Unaccepted(file, trust.Read(file).Digest); waits != (name == "in the first") {
			t.Errorf("%s: waits: %t", name, waits)
		}
	}
}
