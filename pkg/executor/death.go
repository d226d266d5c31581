package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// maxDeaths is the number of workers that die while they work on one step after which
// its run is failed.
const maxDeaths = 3

const (
	// suspectDeaths is the number of deaths after which a step is suspected to cause them.
	// The steps that other runs had in the same workers were in work as often. So a worker
	// begins suspected steps in batches, and records their sizes. After a death in a batch
	// its steps begin in batches of half the size, and only a step that was alone in its
	// batch has caused it.
	suspectDeaths = maxDeaths - 1
	// returnTime bounds the record of a stopping worker that it has put a step back.
	returnTime = 2 * time.Second
)

// past has the claims and deaths of the workers of a step, from its journal.
type past struct {
	// deaths is the number of workers that died since a worker completed something.
	deaths uint32
	// company is the size of the newest batch that the step was in; 0 if there was none.
	company uint32
	// begun is the newest delivery whose beginning was recorded, ended the newest whose
	// end was.
	begun, ended uint64
}

// pastOf reads a journal.
func pastOf(journal []runlog.Entry) past {
	var p past
	for _, e := range journal {
		switch j := e.Record.GetJournal(); {
		case j.GetExecutorFailed() != nil:
			p.ended = max(p.ended, j.GetExecutorFailed().GetDelivery())
		case j.GetStepTaken().GetReturned():
			p.ended = max(p.ended, j.GetStepTaken().GetDelivery())
		case j.GetStepTaken() != nil:
			taken := j.GetStepTaken()
			p.deaths, p.begun, p.company = taken.GetDeaths(), max(p.begun, taken.GetDelivery()), taken.GetCompany()
		case completes(j):
			p.deaths, p.company = 0, 0
		}
	}
	return p
}

// completes reports whether an entry is work that the next worker does not repeat. There is
// only so much of it in a step.
func completes(j *harnessv1.Journal) bool {
	return j.GetModelResponded() != nil || j.GetToolFinished() != nil || j.GetTurnAdmitted() != nil || j.GetCallsJudged() != nil
}

// limit returns the size of the batches that the step may be in. After a death it is half of
// the one before.
func (p past) limit(died bool) uint32 {
	switch {
	case p.deaths < suspectDeaths || p.company == 0:
		return math.MaxUint32
	case died:
		return max(p.company/2, 1)
	}
	return p.company
}

// unexplained reports whether the delivery before this one may have ended with the death
// of its worker. A suspected step that had not begun was not the cause of one.
func (p past) unexplained(delivery uint64) bool {
	if delivery < 2 || p.ended >= delivery-1 {
		return false
	}
	return p.deaths < suspectDeaths || p.begun == delivery-1
}

// countDeath adds the death of the worker that had the delivery before, if it died. A worker
// that answers is alive. While the bus was lost lately the cause is unknown, and no death is
// counted. The count is not stored yet.
func (l *loop) countDeath(ctx context.Context, task *Task, p past, logger *slog.Logger) {
	task.deaths, task.limit = p.deaths, p.limit(false)
	if l.cfg.Witness == nil || !p.unexplained(task.number) || l.had(task.Run, task.Entry.Sequence, task.number-1) {
		return
	}
	alive, err := l.cfg.Witness.Lives(ctx, l.x.Name(), task.Run, task.Entry.Sequence, task.number-1)
	switch {
	case err != nil:
		logger.DebugContext(ctx, "look for the worker that had the step", "error", err)
	case !alive:
		// One in a batch of several is the death of them all.
		if task.deaths < suspectDeaths || p.company <= 1 {
			task.deaths++
		}
		task.limit, task.bereaved = p.limit(true), true
		logger.WarnContext(ctx, "the worker that had the step has died", "count", task.deaths)
	}
}

// startTask records that the task starts, if its step had a worker that died. A suspected
// step first waits for its batch; over notes that it has ended.
func (l *loop) startTask(ctx context.Context, task *Task) (over func(), err error) {
	over = func() {}
	if task.deaths >= suspectDeaths && l.cfg.Witness != nil {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer task.delivery.onStop(func() { cancel(errStopping) })()
		if task.company, over, err = l.suspects.admit(ctx, task.limit); err != nil {
			return nil, err
		}
	} else if !task.bereaved {
		return over, nil
	}
	if err := task.appendTaken(ctx, false); err != nil {
		over()
		return nil, err
	}
	return over, nil
}

// appendTaken appends that the task has its step, or that it has put it back.
func (t *Task) appendTaken(ctx context.Context, returned bool) error {
	return t.AppendJournal(ctx, &harnessv1.Journal{Entry: &harnessv1.Journal_StepTaken{StepTaken: &harnessv1.StepTaken{
		Executor: t.executor, Delivery: t.number, Deaths: t.deaths, Company: t.company, Returned: returned,
	}}}, nil, nil)
}

// putBack puts the step of a worker that stops back, and records that first: the next
// worker cannot ask this one. lost reports that another worker has the step.
func (l *loop) putBack(ctx context.Context, d runlog.Delivery, task *Task) (lost bool) {
	if l.cfg.Witness != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
		defer cancel()
		if err := task.appendTaken(ctx, true); errors.Is(err, runlog.ErrFenced) {
			return true
		}
	}
	_ = d.Nak(0) // another worker continues immediately
	return false
}

// failDead fails a run whose step was in work when maxDeaths workers died.
func (l *loop) failDead(ctx context.Context, task *Task) error {
	return l.commit(ctx, task, task.failure(harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON, fmt.Sprintf(
		"%d workers died while they worked on this step (%s): find out why they ended, for example OOMKilled; then `harness resume %s` tries again",
		task.deaths, l.x.Name(), task.Run.ID)))
}

// maxHad bounds the deliveries that a worker remembers.
const maxHad = 1 << 14

// deliveryKey is a delivery of a step.
type deliveryKey struct {
	place
	delivery uint64
}

// memory has the newest deliveries of a worker, so that others learn that it lives.
type memory struct {
	known map[deliveryKey]bool
	order []deliveryKey
	next  int // the oldest in order, once it is full
}

func (m *memory) add(h deliveryKey) {
	switch {
	case m.known[h]:
		return
	case m.known == nil:
		m.known = map[deliveryKey]bool{}
	}
	m.known[h] = true
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
	l.memory.add(deliveryKey{place{e.Run, e.Sequence}, delivery})
}

// had reports whether this worker had a delivery.
func (l *loop) had(run runlog.Run, sequence, delivery uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memory.known[deliveryKey{place{run, sequence}, delivery}]
}
