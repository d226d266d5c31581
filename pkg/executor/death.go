package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// maxDeaths is the number of workers that die while they work on one step after which
// its run is parked, and in the end failed.
const maxDeaths = 3

// forgetTime is how long a death counts.
const forgetTime = time.Hour

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
	// died has the deaths that count, oldest first: since a worker completed something, and
	// within forgetTime.
	died []time.Time
	// company is the size of the newest batch that the step was in; 0 if there was none.
	company uint32
	// begun is the newest delivery whose beginning was recorded, ended the newest whose
	// end was.
	begun, ended uint64
}

// pastOf reads a journal at a time.
func pastOf(journal []runlog.Entry, now time.Time) past {
	var p past
	for _, e := range journal {
		switch j := e.Record.GetJournal(); {
		case j.GetExecutorFailed() != nil:
			p.ended = max(p.ended, j.GetExecutorFailed().GetDelivery())
		case j.GetStepTaken().GetReturned():
			p.ended = max(p.ended, j.GetStepTaken().GetDelivery())
		case j.GetStepTaken() != nil:
			taken := j.GetStepTaken()
			p.died, p.begun, p.company = diedOf(taken, commitTime(e)), max(p.begun, taken.GetDelivery()), taken.GetCompany()
		case completes(j):
			p.died, p.company = nil, 0
		}
	}
	p.died = slices.DeleteFunc(p.died, func(at time.Time) bool { return now.Sub(at) > forgetTime })
	return p
}

// diedOf returns when the deaths of an entry were counted: for one of an earlier version when it
// was made.
func diedOf(taken *harnessv1.StepTaken, made time.Time) []time.Time {
	var died []time.Time
	for _, at := range taken.GetDied() {
		died = append(died, at.AsTime())
	}
	if len(died) == 0 {
		died = slices.Repeat([]time.Time{made}, int(min(taken.GetDeaths(), maxDeaths)))
	}
	return died
}

// deaths is the number of deaths that count.
func (p past) deaths() int { return len(p.died) }

// completes reports whether an entry is work that the next worker does not repeat. There is
// only so much of it in a step.
func completes(j *harnessv1.Journal) bool {
	return j.GetModelResponded() != nil || j.GetToolFinished() != nil || j.GetTurnAdmitted() != nil || j.GetCallsJudged() != nil
}

// limit returns the size of the batches that the step may be in. After a death it is half of
// the one before.
func (p past) limit(died bool) uint32 {
	switch {
	case p.deaths() < suspectDeaths || p.company == 0:
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
	return p.deaths() < suspectDeaths || p.begun == delivery-1
}

// evidence describes the worker that had a step before.
type evidence struct {
	// alive: it answers.
	alive bool
	// waited: its last word was that it waits.
	waited bool
	// atWork: a host confirms that something of the step is at work there.
	atWork bool
}

// burden has the deaths that count against a step.
type burden struct {
	// died has the deaths that count, oldest first.
	died []time.Time
	// limit bounds the batches that the step may be in.
	limit uint32
	// bereaved: a death is to be recorded.
	bereaved bool
}

// resolve returns the burden of a step. A death counts unless its worker waited, or what it has
// started is at work: then the step did nothing in the process that died. Without a word it
// counts. One in a batch of several is the death of them all, and counts for none.
func (p past) resolve(e evidence, now time.Time) burden {
	if e.alive || e.waited || e.atWork {
		return burden{died: p.died, limit: p.limit(false)}
	}
	b := burden{died: slices.Clone(p.died), limit: p.limit(true), bereaved: true}
	if p.deaths() < suspectDeaths || p.company <= 1 {
		b.died = append(b.died, now)
	}
	return b
}

// countDeath adds the death of the worker that had the delivery before, if it died. A worker
// that answers is alive. While the bus was lost lately the cause is unknown, and no death is
// counted. The count is not stored yet.
func (l *loop) countDeath(ctx context.Context, task *Task, p past, logger *slog.Logger) {
	task.burden = burden{died: p.died, limit: p.limit(false)}
	if l.cfg.Witness == nil || !p.unexplained(task.number) || l.Had(task.Run, task.Entry.Sequence, task.number-1) {
		return
	}
	alive, last, err := l.cfg.Witness.Lives(ctx, l.x.Name(), task.Run, task.Entry.Sequence, task.number-1)
	if err != nil {
		logger.DebugContext(ctx, "look for the worker that had the step", "error", err)
		return
	}
	e := evidence{alive: alive, waited: last.GetWaits()}
	if a, ok := l.x.(Attester); ok && !e.alive && !e.waited {
		e.atWork = a.AtWork(ctx, task)
	}
	task.burden = p.resolve(e, l.cfg.Now())
	if !e.alive {
		logger.WarnContext(ctx, "the worker that had the step has died", "count", len(task.burden.died), "waited", e.waited, "at_work", e.atWork)
	}
}

// Attester is an Executor that can find out whether the work of a step continues without its
// worker.
type Attester interface {
	// AtWork reports whether something that a worker of the task has started elsewhere, such as
	// a call on a tool host, is at work there. It is called when a worker takes over from one that has died
	// without the word that it waits.
	AtWork(ctx context.Context, task *Task) bool
}

// startTask records that the task starts, if its step had a worker that died. A suspected
// step first waits for its batch; over notes that it has ended.
func (l *loop) startTask(ctx context.Context, task *Task) (over func(), err error) {
	over = func() {}
	if len(task.burden.died) >= suspectDeaths && l.cfg.Witness != nil {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer task.delivery.onStop(func() { cancel(errStopping) })()
		if task.company, over, err = l.suspects.admit(ctx, task.burden.limit); err != nil {
			return nil, err
		}
	} else if !task.burden.bereaved {
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
	taken := &harnessv1.StepTaken{
		Executor: t.executor, Delivery: t.number, Deaths: uint32(len(t.burden.died)), Company: t.company, Returned: returned, //nolint:gosec // at most maxDeaths
	}
	for _, at := range t.burden.died {
		taken.Died = append(taken.Died, timestamppb.New(at))
	}
	return t.AppendJournal(ctx, &harnessv1.Journal{Entry: &harnessv1.Journal_StepTaken{StepTaken: taken}}, nil, nil)
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

// giveUp passes a run on whose step was in work when maxDeaths workers died. The stop decision
// parks it, and fails it after the last park in a row. A run that the stop decision or repair
// cannot decide about is parked here, if a resume decides again; otherwise it fails.
func (l *loop) giveUp(ctx context.Context, task *Task) error {
	deaths := len(task.burden.died)
	message := fmt.Sprintf(
		"%d workers died while they worked on this step (%s): find out why they ended, for example OOMKilled; then `harness resume %s` tries again",
		deaths, l.x.Name(), task.Run.ID)
	outcome := task.failure(harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON, message)
	step := outcome.GetStep()
	switch failed := step.GetTurnComplete().GetError(); {
	case task.decidedAgain():
		parked := &harnessv1.Step{From: task.executor, Snapshot: task.Snapshot()}
		ok, err := runstate.ParkForPoison(parked, parked.GetSnapshot(), message, l.cfg.Now())
		if err != nil {
			return err
		}
		if ok {
			parked.To = runlog.Park
			s := parked.GetSnapshot()
			pause := runstate.Event(s, s.GetTurnCount(), event.SessionPause(s.GetStopReason()))
			outcome = &harnessv1.Outcome{Step: parked, Events: []*harnessv1.Event{pause}}
		}
	case failed != nil && l.x.Name() != workflow.Repair:
		failed.Deaths = uint32(deaths) //nolint:gosec // about maxDeaths
		leaveUnknown(step.GetSnapshot(), task.Journal)
	}
	return l.commit(ctx, task, outcome)
}

// decidedAgain reports whether a park after the task's step, which is one of repair or of the stop
// decision, loses nothing: repair decides again from the snapshot alone. An input that woke the
// run would wake it again immediately.
func (t *Task) decidedAgain() bool {
	step := t.Step()
	s := step.GetSnapshot()
	if runstate.Ended(s) || s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED || len(s.GetBackgroundCommands()) > 0 {
		return false
	}
	switch t.executor {
	case workflow.Repair:
		return step.GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE
	case workflow.StopDecision:
		return step.GetTurnComplete().GetError() == nil && step.GetTurnComplete().GetFinish() == nil
	}
	return false
}
