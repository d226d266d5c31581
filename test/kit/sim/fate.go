package sim

import (
	"errors"
	"testing/synctest"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// flight is a write that was sent and has not arrived.
type flight struct {
	o     *op
	since time.Time
	// proposed means that the leader has accepted the write: it lands unchanged,
	// whatever lands before it. It blocks others with a fence of the same spelling.
	proposed bool
	waits    bool // its sender still waits for the answer
}

// act carries out one choice.
func (w *World) act(c choice) {
	switch {
	case c.o != nil:
		w.carryOut(c.o)
	case c.flight != nil:
		w.land(c.flight)
	case c.held != nil:
		w.deliver(c.consumer, c.held, c.to)
	case c.do != nil:
		c.do()
	}
}

// carryOut draws the fate of an interaction and applies it.
func (w *World) carryOut(o *op) {
	w.mu.Lock()
	w.pending = without(w.pending, o)
	w.mu.Unlock()
	fate := w.fate(o)
	switch fate {
	case crashedBefore:
		w.recordOp(o, fate)
		w.sentOrNot(o)
		w.crash(o.p)
	case crashedAfter:
		_ = o.do(through)
		w.recordOp(o, fate)
		w.crash(o.p)
	case answerLost:
		err := o.do(through)
		w.recordOp(o, fate)
		if !errors.Is(err, errWaiting) {
			o.finish(unavailable(o, errNoAnswer))
		}
	case writeLost, notAnswered:
		w.recordOp(o, fate)
		o.finish(unavailable(o, errNoAnswer))
	case leftUndecided:
		w.recordOp(o, fate)
		w.launchFlight(o, false)
		o.finish(unavailable(o, errNoAnswer))
	case proposed:
		w.propose(o)
	default:
		err := o.do(fate)
		w.recordOp(o, fate)
		if !errors.Is(err, errWaiting) {
			o.finish(err)
		}
	}
}

// fate draws the fate of an interaction.
func (w *World) fate(o *op) fate {
	r := w.cfg.Rates
	switch {
	case o.key.kind == onCall:
		return through
	case w.chance(r.CrashBefore):
		return crashedBefore
	case w.chance(r.CrashAfter):
		return crashedAfter
	}
	switch o.key.kind {
	case onModel, onAnswer, onResume:
		return through
	case onDescribe, onExecute, onCancel:
		if w.chance(r.CallLost) {
			return notAnswered
		}
		return through
	default: // an operation on the log, below
	}
	if o.write {
		switch {
		case w.chance(r.LostAnswer):
			return answerLost
		case w.chance(r.LostWrite):
			return writeLost
		case w.chance(r.Undecided):
			return leftUndecided
		case o.fence != "" && w.cfg.Replicated && !w.healing && w.random.IntN(3) == 0:
			return proposed
		}
		return through
	}
	switch {
	case w.chance(r.Unanswered):
		return notAnswered
	case w.cfg.Replicated && (o.key.kind == onView || o.key.kind == onLastInbox) && w.chance(r.Stale):
		return answeredStale
	}
	return through
}

// propose makes the leader accept an append: it is checked now and lands later.
func (w *World) propose(o *op) {
	if err := o.check(); err != nil {
		if errors.Is(err, errSettled) {
			err = nil
		}
		w.recordOp(o, proposed)
		o.finish(err)
		return
	}
	w.recordOp(o, proposed)
	w.launchFlight(o, true).proposed = true
}

var errSettled = errors.New("stored before")

// land makes a write in flight arrive, or loses it.
func (w *World) land(f *flight) {
	w.flights = without(w.flights, f)
	lost := !w.healing && w.random.IntN(10) < 3 && (!f.proposed || w.cfg.Rates.Undecided > 0 && w.random.IntN(3) == 0)
	if lost {
		w.recordOpAs(f.o, onLand, dropped)
		if f.waits {
			f.o.finish(unavailable(f.o, errNoAnswer))
		}
		return
	}
	fate := through
	if f.proposed || f.o.sent != nil {
		fate = landed
	}
	err := f.o.do(fate)
	if err != nil {
		w.recordOpAs(f.o, onLand, dropped)
	} else {
		w.recordOpAs(f.o, onLand, landed)
	}
	if errors.Is(err, runlog.ErrFenced) || err == nil || f.waits {
		if f.waits {
			f.o.finish(err)
		}
	}
}

// finish resumes one goroutine and waits until it blocks again. If two ran at the same
// time, the result would depend on their order.
func (w *World) finish(o *op, err error) {
	o.finish(err)
	synctest.Wait()
}

// sentOrNot draws whether a write without a waiting caller was sent.
func (w *World) sentOrNot(o *op) {
	if o.write && w.random.IntN(2) == 0 {
		w.launchFlight(o, false)
	}
}

func (w *World) launchFlight(o *op, waits bool) *flight {
	if o.sent != nil {
		o.sent()
	}
	f := &flight{o: o, since: time.Now(), waits: waits}
	w.flights = append(w.flights, f)
	return f
}
