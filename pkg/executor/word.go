package executor

import (
	"context"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Words about a step. A worker publishes one with each heartbeat: that it works, or that it
// waits for something outside of its process. A step that ends before its first heartbeat has
// none, and no word is stored. A wait that a word has reported and that ends is followed by a
// word immediately, so that a worker that dies of what it has received has not reported a
// wait. A step that was delivered before has no such delay: its words follow each change.

// Waits reports that the step that ctx belongs to waits for something outside of this process,
// such as the first bytes of a provider, a tool host or a person, until over is called. It does nothing
// for a context without a step.
func Waits(ctx context.Context) (over func()) {
	step, ok := ctx.Value(stepKey{}).(runningStep)
	if !ok || step.task == nil {
		return func() {}
	}
	return step.task.startWait()
}

// startWait reports a wait, until over is called.
func (t *Task) startWait() (over func()) {
	t.changeWord(func() { t.outside++ })
	return sync.OnceFunc(func() { t.changeWord(func() { t.outside-- }) })
}

// changeWord changes the waits of the task, and publishes a word if the last one is wrong now.
func (t *Task) changeWord(change func()) {
	t.mu.Lock()
	change()
	waits := t.waiting || t.outside > 0
	say := t.saidWaits != waits && (t.saidWaits || t.number > 1)
	var word *harnessv1.StepWord
	if say {
		word = t.nextWord()
	}
	t.mu.Unlock()
	if say {
		t.publish(word, !waits)
	}
}

// beat publishes whether the task waits.
func (t *Task) beat() {
	t.mu.Lock()
	word := t.nextWord()
	t.mu.Unlock()
	t.publish(word, false)
}

// nextWord returns the next word. The caller holds mu.
func (t *Task) nextWord() *harnessv1.StepWord {
	t.words++
	t.saidWaits = t.waiting || t.outside > 0
	return &harnessv1.StepWord{Sequence: t.Entry.Sequence, Delivery: t.number, Number: t.words, Waits: t.saidWaits}
}

func (t *Task) publish(word *harnessv1.StepWord, sent bool) {
	if t.cfg.Witness != nil && t.loop != nil {
		t.cfg.Witness.PublishWord(t.executor, t.Run, word, sent)
	}
}

// Had implements runlog.Testimony.
func (l *loop) Had(run runlog.Run, sequence, delivery uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, had := l.had.known[deliveryKey{place{run, sequence}, delivery}]
	return had
}

// Heard implements runlog.Testimony.
func (l *loop) Heard(run runlog.Run, word *harnessv1.StepWord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := deliveryKey{place{run, word.GetSequence()}, word.GetDelivery()}
	if last := l.heard.known[key]; word.GetNumber() > last.number {
		l.heard.add(key, lastWord{number: word.GetNumber(), waits: word.GetWaits()})
	}
}

// LastWord implements runlog.Testimony.
func (l *loop) LastWord(run runlog.Run, sequence, delivery uint64) *harnessv1.StepWord {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.heard.known[deliveryKey{place{run, sequence}, delivery}]
	if !ok {
		return nil
	}
	return &harnessv1.StepWord{Sequence: sequence, Delivery: delivery, Number: last.number, Waits: last.waits}
}

// lastWord is the newest word about a delivery.
type lastWord struct {
	number uint64
	waits  bool
}

// maxHad bounds the deliveries that a worker remembers, and those that it has heard of.
const maxHad = 1 << 14

// deliveryKey is a delivery of a step.
type deliveryKey struct {
	place
	delivery uint64
}

// memory has a value for each of the newest deliveries.
type memory[V any] struct {
	known map[deliveryKey]V
	order []deliveryKey
	next  int // the oldest in order, once it is full
}

// add sets the value of a delivery, which is one of the newest from then on.
func (m *memory[V]) add(h deliveryKey, v V) {
	if m.known == nil {
		m.known = map[deliveryKey]V{}
	}
	if _, known := m.known[h]; known {
		m.known[h] = v
		return
	}
	m.known[h] = v
	if len(m.order) < maxHad {
		m.order = append(m.order, h)
		return
	}
	delete(m.known, m.order[m.next])
	m.order[m.next] = h
	m.next = (m.next + 1) % maxHad
}

// remember remembers a delivery to this worker.
func (l *loop) remember(e runlog.Entry, delivery uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.had.add(deliveryKey{place{e.Run, e.Sequence}, delivery}, struct{}{})
}
