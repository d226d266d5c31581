package ledger

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// TestNumbersGrow: the number of a call is greater than those of its run in the ledger, and than those that the
// log of the run knows, which may be from a ledger that was newer.
func TestNumbersGrow(t *testing.T) {
	t.Parallel()
	l, err := Open(t.TempDir(), false, time.Hour, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	run, err := RunKey("n", "r", 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		id    string
		known uint64
		want  string // the calls that are later than 7
	}{
		{"a", 7, "a:8"}, {"b", 3, "a:8 b:9"}, {"a", 9, "b:9 a:10"}, {"c", 20, "b:9 a:10 c:21"},
	} {
		c := toolhost.Describe(step.id, "run_command", "{}")
		if err := l.StoreNumbered(CallKey(run, step.id), run, c, step.known); err != nil {
			t.Fatal(err)
		}
		own, later, err := l.Numbered(run, step.id, 7)
		if err != nil || own.GetSequence() != c.GetSequence() {
			t.Errorf("%s has the number %d, %v; it was stored with %d", step.id, own.GetSequence(), err, c.GetSequence())
		}
		got := ""
		for _, c := range later {
			got += fmt.Sprintf(" %s:%d", c.GetCallId(), c.GetSequence())
		}
		if got != " "+step.want {
			t.Errorf("after %s: later than 7 are%s, want %s", step.id, got, step.want)
		}
	}
}
