package jetstream

import (
	"errors"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestLives: only a live worker of the executor that had the delivery answers for it.
func TestLives(t *testing.T) {
	e, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	open := func() *Log {
		l, err := e.Open(t.Context(), Config{}, Layout{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	run := runlog.Run{Namespace: "n-1", ID: "r_1"}
	worker, other, asks := open(), open(), open()
	testify := func(l *Log, executor string, had func(runlog.Run, uint64, uint64) bool) func() {
		stop, err := l.Testify(executor, had)
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	leave := testify(worker, "turn", func(r runlog.Run, sequence, delivery uint64) bool { return r == run && sequence == 7 && delivery == 2 })
	defer testify(other, "turn", func(runlog.Run, uint64, uint64) bool { return false })()
	defer testify(other, "repair", func(runlog.Run, uint64, uint64) bool { return true })()
	lives := func(executor string, run runlog.Run, sequence, delivery uint64) bool {
		t.Helper()
		alive, err := asks.Lives(t.Context(), executor, run, sequence, delivery)
		if err != nil {
			t.Error(err)
		}
		return alive
	}
	if !lives("turn", run, 7, 2) {
		t.Error("the worker does not live")
	}
	for name, got := range map[string]bool{
		"another delivery": lives("turn", run, 7, 3), "another step": lives("turn", run, 8, 2),
		"another run": lives("turn", runlog.Run{Namespace: "n-1", ID: "r"}, 7, 2), "an executor without workers": lives("compaction", run, 7, 2),
	} {
		if got {
			t.Errorf("%s: a worker lives", name)
		}
	}
	leave()
	if lives("turn", run, 7, 2) {
		t.Error("the worker lives after it has left")
	}
	// After an outage no answer proves nothing.
	defer testify(asks, "turn", func(runlog.Run, uint64, uint64) bool { return false })()
	asks.reconnected()
	if _, err := asks.Lives(t.Context(), "turn", run, 7, 2); !errors.Is(err, runlog.ErrUnavailable) {
		t.Errorf("after an outage: %v", err)
	}
	asks.Close()
	if _, err := asks.Lives(t.Context(), "turn", run, 7, 2); !errors.Is(err, runlog.ErrUnavailable) {
		t.Errorf("without a connection: %v", err)
	}
}
