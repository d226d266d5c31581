package jetstream

import (
	"errors"
	"sync/atomic"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// testimony is the knowledge of a worker about deliveries.
type testimony struct {
	had   func(run runlog.Run, sequence, delivery uint64) bool
	words *words // nil: it hears none
}

func (t testimony) Had(run runlog.Run, sequence, delivery uint64) bool {
	return t.had != nil && t.had(run, sequence, delivery)
}

func (t testimony) Heard(run runlog.Run, w *harnessv1.StepWord) {
	if t.words != nil {
		t.words.heard <- w
		t.words.last.Store(w)
	}
}

func (t testimony) LastWord(_ runlog.Run, sequence, delivery uint64) *harnessv1.StepWord {
	if t.words == nil {
		return nil
	}
	if w := t.words.last.Load(); w.GetSequence() == sequence && w.GetDelivery() == delivery {
		return w
	}
	return nil
}

// words are those that a worker has heard.
type words struct {
	heard chan *harnessv1.StepWord
	last  atomic.Pointer[harnessv1.StepWord]
}

// TestLastWord: the newest word that any worker has heard is that of a worker that has died. One
// that lives outweighs it, and a worker of an earlier version hears of none.
func TestLastWord(t *testing.T) {
	t.Parallel()
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
	worker, early, late, asks := open(), &words{heard: make(chan *harnessv1.StepWord, 9)}, &words{heard: make(chan *harnessv1.StepWord, 9)}, open()
	listen := func(w *words) func() {
		stop, err := open().Testify("turn", testimony{words: w})
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	last := func() *harnessv1.StepWord {
		alive, w, err := asks.Lives(t.Context(), "turn", run, 7, 2)
		if alive || err != nil {
			t.Errorf("alive %t, %v", alive, err)
		}
		return w
	}
	stop := listen(early)
	if w := last(); w != nil {
		t.Errorf("before any word there is %v", w)
	}
	worker.PublishWord("turn", run, &harnessv1.StepWord{Sequence: 7, Delivery: 2, Number: 1, Waits: true}, false)
	<-early.heard
	if w := last(); !w.GetWaits() || w.GetNumber() != 1 {
		t.Errorf("the last word is %v", w)
	}
	stop() // it hears no more, and early's word is the older one
	defer listen(late)()
	if late.last.Store(&harnessv1.StepWord{Sequence: 7, Delivery: 2, Number: 2}); last().GetWaits() {
		t.Error("an older word wins")
	}
	early.last.Store(&harnessv1.StepWord{Sequence: 7, Delivery: 2, Number: 3, Waits: true})
	deaf := open()
	stop, err = deaf.Testify("turn", testimony{had: func(runlog.Run, uint64, uint64) bool { return false }, words: early})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if w := last(); !w.GetWaits() || w.GetNumber() != 3 {
		t.Errorf("of two words the last is %v", w)
	}
	if _, err := asks.nc.Request(workSubject+"turn.n-1.r_1", []byte("7 2"), livesWait); err == nil {
		t.Error("a worker of an earlier version got a word, which it takes for that of a worker that lives")
	}
	lives, err := open().Testify("turn", testimony{had: func(_ runlog.Run, sequence, _ uint64) bool { return sequence == 7 }})
	if err != nil {
		t.Fatal(err)
	}
	defer lives()
	if alive, _, err := asks.Lives(t.Context(), "turn", run, 7, 2); !alive || err != nil {
		t.Errorf("the worker lives: %t, %v", alive, err)
	}
	worker.PublishWord("turn", run, &harnessv1.StepWord{Sequence: 8, Delivery: 1, Number: 1}, true)
	if w := <-late.heard; w.GetSequence() != 8 {
		t.Errorf("heard %v", w)
	}
}

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
		stop, err := l.Testify(executor, testimony{had: had})
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
		alive, _, err := asks.Lives(t.Context(), executor, run, sequence, delivery)
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
	if _, _, err := asks.Lives(t.Context(), "turn", run, 7, 2); !errors.Is(err, runlog.ErrUnavailable) {
		t.Errorf("after an outage: %v", err)
	}
	asks.Close()
	if _, _, err := asks.Lives(t.Context(), "turn", run, 7, 2); !errors.Is(err, runlog.ErrUnavailable) {
		t.Errorf("without a connection: %v", err)
	}
}
