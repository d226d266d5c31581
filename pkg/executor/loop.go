package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// Delays before a step is delivered again.
const (
	unavailableDelay = time.Second
	schemaDelay      = 30 * time.Second
	failureDelay     = 100 * time.Millisecond // doubles with each failure
)

// commitTimeout bounds a commit, which continues when its worker is stopped.
const commitTimeout = patience

// errLost ends the work on a step that another worker has.
var errLost = errors.New("another worker has the step")

// Run executes the steps addressed to x until ctx ends, and returns once all work has
// ended. It returns nil if ctx ended it.
func Run(ctx context.Context, cfg Config, x Executor) error {
	cfg = cfg.withDefaults()
	l := newLoop(cfg, x)
	cfg.Metrics.Serves(ctx, x.Name())
	if cfg.Witness != nil {
		stop, err := cfg.Witness.Testify(x.Name(), l)
		if err != nil {
			return err
		}
		defer stop()
	}
	work, cancel := Draining(ctx, cfg.Drain)
	defer cancel()
	defer l.stopPokes()
	err := cfg.Log.Consume(ctx, x.Name(), cfg.Concurrency, func(intake context.Context, d runlog.Delivery) {
		began := l.cfg.Now()
		l.cfg.Metrics.StepReceived(work, x.Name(), d.Redelivered(), commitTime(d.Entry()), began)
		r := &stepDelivery{Delivery: d, stopping: func() bool { return intake.Err() != nil }}
		r.onStop = func(f func()) func() bool { return context.AfterFunc(intake, f) }
		outcome := l.handle(work, r)
		l.cfg.Metrics.StepEnded(work, x.Name(), outcome, l.cfg.Now().Sub(began)-r.waited)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type loop struct {
	cfg    Config
	x      Executor
	logger *slog.Logger

	suspects *suspects

	pokes interrupt.Pokes // of the runs that wait

	mu          sync.Mutex
	working     map[place]bool   // steps in work in this process
	waiting     int              // steps that wait without a slot
	unsubscribe func()           // of pokes; nil without a subscription
	had         memory[struct{}] // deliveries to this process
	heard       memory[lastWord] // of all workers of the executor
}

func newLoop(cfg Config, x Executor) *loop {
	return &loop{cfg: cfg, x: x, logger: cfg.Logger.With("executor", x.Name()), suspects: &suspects{}}
}

// lostDeliveries is the number of deliveries of a step after which a journal whose records
// do not follow each other fails its run. Before, the cause may be records that the bus has
// just lost, and that this process has not dropped yet.
const lostDeliveries = 3

// place identifies a step.
type place struct {
	run      runlog.Run
	sequence uint64
}

// start records that a step is in work in this process. first is false if it already
// was.
func (l *loop) start(e runlog.Entry) (end func(), first bool) {
	p := place{e.Run, e.Sequence}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.working[p] {
		return nil, false
	}
	if l.working == nil {
		l.working = map[place]bool{}
	}
	l.working[p] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.working, p)
	}, true
}

// commitTime returns when a record was made, the zero time if the record cannot be read.
func commitTime(e runlog.Entry) time.Time {
	if at := e.Record.GetCommitTime(); at != nil {
		return at.AsTime()
	}
	return time.Time{}
}

// handle handles one delivery and returns its result.
func (l *loop) handle(ctx context.Context, d *stepDelivery) telemetry.Outcome {
	e := d.Entry()
	logger := withLazily(l.logger, slog.String("run", e.Run.ID), slog.String("namespace", e.Run.Namespace), slog.Uint64("version", e.Header.Version))
	if errors.Is(e.Err, runlog.ErrSchemaTooNew) {
		logger.WarnContext(ctx, "step left to a newer worker", "schema", e.Header.Schema)
		_ = d.Nak(schemaDelay)
		return telemetry.PutBack
	}
	l.remember(e, d.Number())
	end, first := l.start(e)
	if !first {
		// This is a copy that waited until the work on the original had started.
		// Claiming the step again would fence that work off. If that work dies, the
		// step is delivered again.
		return telemetry.NotMine
	}
	defer end()
	var journal []runlog.Entry
	if d.Redelivered() || e.Record == nil {
		view, err := l.cfg.Log.View(ctx, e.Run, e.Sequence)
		if errors.Is(err, runlog.ErrLost) {
			logger.WarnContext(ctx, "step dropped", "error", err)
			return telemetry.FencedOff
		}
		if err != nil {
			logger.WarnContext(ctx, "step put back", "error", err)
			_ = d.Nak(unavailableDelay)
			return telemetry.PutBack
		}
		if view.Step.Sequence > e.Sequence {
			_ = d.Ack() // done before
			return telemetry.NotMine
		}
		if e.Record == nil {
			return l.failUnreadable(ctx, d, view.Newest, e.Err, logger)
		}
		journal, err = runlog.Back(ctx, l.cfg.Log, view.Newest, e.Header.Version)
		switch {
		case err == nil:
		case errors.Is(err, runlog.ErrLost) && d.Number() <= lostDeliveries:
			logger.WarnContext(ctx, "step dropped", "error", err)
			return telemetry.FencedOff
		case !temporary(err):
			return l.failUnreadable(ctx, d, view.Newest, err, logger)
		default:
			logger.WarnContext(ctx, "step put back", "error", err)
			_ = d.Nak(unavailableDelay)
			return telemetry.PutBack
		}
	}
	failpoint.Hit(l.x.Name(), "received")
	task := newTask(l, d, journal)
	if l.countDeath(ctx, task, pastOf(journal, l.cfg.Now()), logger); len(task.burden.died) >= maxDeaths {
		return l.finish(ctx, d, task, l.giveUp(ctx, task), logger)
	}
	ctx, span := l.span(ctx, task)
	defer span.End()
	outcome, err := l.execute(ctx, d, task)
	var illegal *runstate.IllegalTransition
	if errors.As(err, &illegal) { // a retry cannot fix it
		outcome, err = task.failure(harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION, err.Error()), nil
	}
	if err == nil {
		failpoint.Hit(l.x.Name(), "executed")
		err = l.commit(ctx, task, outcome)
	}
	describe(ctx, e.Run, span, outcome, err)
	if err == nil {
		logSegment(ctx, logger, outcome.GetStep())
	}
	if d.waited > 0 {
		span.SetAttributes(spans.WaitedMS.Int64(d.waited.Milliseconds()))
	}
	return l.finish(ctx, d, task, err, logger)
}

// finish acts on the verdict on err.
func (l *loop) finish(ctx context.Context, d runlog.Delivery, task *Task, err error, logger *slog.Logger) telemetry.Outcome {
	switch verdictOf(err, ctx.Err() != nil) {
	case committed:
		failpoint.Hit(l.x.Name(), "committed")
		if aerr := d.Ack(); aerr != nil {
			logger.DebugContext(ctx, "acknowledge", "error", aerr) // delivered again and dropped then
		}
		failpoint.Hit(l.x.Name(), "acked")
		return telemetry.Committed
	case fencedOff:
		logger.DebugContext(ctx, "step is another worker's", "error", err)
		return telemetry.FencedOff
	case stopping:
		if l.putBack(ctx, d, task) {
			return telemetry.FencedOff
		}
		return telemetry.PutBack
	case unavailable:
		logger.WarnContext(ctx, "step put back", "error", err)
		_ = d.Nak(unavailableDelay)
		return telemetry.PutBack
	case failed:
	}
	return l.failed(ctx, d, task, err, logger)
}

// execute runs the executor, with a heartbeat, and turns a panic into an error.
func (l *loop) execute(ctx context.Context, d runlog.Delivery, task *Task) (outcome *harnessv1.Outcome, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx = context.WithValue(ctx, stepKey{}, runningStep{stopping: task.delivery.stopping, cancel: cancel, task: task})
	stop := l.heartbeat(ctx, cancel, d, task)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			l.logger.ErrorContext(ctx, "executor panicked", "run", task.Run.ID, "panic", p, "stack", string(debug.Stack()))
		}
		if cause := context.Cause(ctx); err != nil && (errors.Is(cause, errLost) || errors.Is(cause, runlog.ErrLost) || errors.Is(cause, errStopping)) {
			err = cause
		}
	}()
	if err := task.enterRoom(ctx); err != nil {
		return nil, err
	}
	defer task.leaveRoom()
	over, err := l.startTask(ctx, task)
	if err != nil {
		return nil, err
	}
	defer over()
	if err := task.unpack(ctx); err != nil {
		return nil, err
	}
	return l.x.Execute(ctx, task)
}

// commit appends the outcome. It continues when the worker is stopped.
func (l *loop) commit(ctx context.Context, task *Task, outcome *harnessv1.Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	err := task.commit(ctx, outcome)
	var illegal *runstate.IllegalTransition
	switch {
	case errors.As(err, &illegal):
		return task.commit(ctx, task.failure(harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION, err.Error()))
	case errors.Is(err, errSnapshotTooLarge):
		return task.commit(ctx, task.failure(harnessv1.TurnErrorKind_TURN_ERROR_KIND_SNAPSHOT_TOO_LARGE, err.Error()))
	}
	return err
}

// failed records an error of the executor, and fails the run if there were too many.
func (l *loop) failed(ctx context.Context, d runlog.Delivery, task *Task, err error, logger *slog.Logger) telemetry.Outcome {
	count := task.failures + 1
	logger.ErrorContext(ctx, "executor failed", "error", err, "count", count)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	message := content.Cut(err.Error(), content.MaxPreview)
	note := task.AppendJournal(ctx,
		&harnessv1.Journal{Entry: &harnessv1.Journal_ExecutorFailed{ExecutorFailed: &harnessv1.ExecutorFailed{
			Executor: l.x.Name(), Error: message, Count: count, Delivery: task.number,
		}}},
		nil,
		[]*harnessv1.Event{runstate.Event(task.Step().GetSnapshot(), task.Step().GetSnapshot().GetTurnCount(), &harnessv1.Event{
			Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{
				Executor: l.x.Name(), Error: message, Count: count,
			}},
		})})
	if note == nil && count >= MaxFailures {
		note = task.commit(ctx, task.failure(harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON,
			fmt.Sprintf("%s failed %d times at the same step: %s", l.x.Name(), count, message)))
		if note == nil {
			_ = d.Ack()
			l.cfg.Metrics.DeadLetter(ctx, l.x.Name())
			return telemetry.Committed
		}
	}
	if note != nil && errors.Is(note, runlog.ErrFenced) {
		return telemetry.FencedOff
	}
	_ = d.Nak(failureDelay << min(count, MaxFailures))
	return telemetry.Failed
}
