package turnserver

import (
	"context"
	"errors"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// journal is where a turn notes its progress: the run's log, or nothing for an
// orchestrator of one's own.
type journal interface {
	AppendJournal(ctx context.Context, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error
	Snapshot() *harnessv1.Snapshot
}

// working is one turn under way.
type working struct {
	w        *Server
	run      runlog.Run
	s        *harnessv1.Snapshot // of the step; not changed
	p        *turn.Progress
	journal  journal
	host     *host
	offered  *offered
	takeover bool
	delta    func(*harnessv1.Delta)
	made     *agent.Definition
	load     func(ctx context.Context) (*conversation.Conversation, error)
	loaded   *conversation.Conversation // once it was needed
	unlogged bool                       // nothing is stored: an orchestrator of one's own has the turn
}

// Execute carries out a turn, or what is left of it.
func (w *Server) Execute(ctx context.Context, task *executor.Task) (*harnessv1.Outcome, error) {
	h, err := w.toolHost(ctx, false)
	if err != nil {
		return nil, err
	}
	s := task.Step().GetSnapshot()
	made, err := w.definitions.Load(ctx, task.Run, s)
	if err != nil {
		return nil, err
	}
	o, err := w.offer(ctx, task.Run, s, made, h)
	if err != nil {
		return nil, err
	}
	t := &working{
		w: w, run: task.Run, s: s, p: turn.Begin(task.Step()), journal: task, host: h, offered: o, made: made,
		takeover: len(task.Journal) > 0,
		delta: func(d *harnessv1.Delta) {
			if err := w.cfg.Log.PublishDelta(task.Run, d); err != nil {
				w.cfg.Logger.Debug("delta", "error", err)
			}
		},
		load: func(ctx context.Context) (*conversation.Conversation, error) {
			return w.conversations.Load(ctx, s.GetFirstSequence(), task.Tail())
		},
	}
	for _, e := range task.Journal {
		t.p.Fold(e.Record)
	}
	return w.attend(ctx, t, task)
}

// attend runs a turn while it listens for what would stop it.
func (w *Server) attend(ctx context.Context, t *working, task *executor.Task) (*harnessv1.Outcome, error) {
	// What ends the turn must not end the records about it. When the step is lost
	// or this process stops, they have a moment more.
	keep, release := lingering(ctx)
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if deadline, ok := runstate.WallClockDeadline(t.s); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, deadline, interrupt.ErrOutOfTime)
		defer stop()
	}
	lookout, stop := w.active.Inbox(ctx, cancel, t.run, t.s)
	defer stop()
	if task != nil {
		task.OnHeartbeat(func(hctx context.Context, view runlog.View) {
			if view.InboxSequence > t.s.GetInboxCursor() {
				_ = lookout.Look(hctx) // the next heartbeat looks again
			}
		})
	}
	return t.carryOut(ctx, keep, lookout.Looked)
}

// linger is how long records may still be made after the work was ended.
const linger = 5 * time.Second

// lingering is a context that ends a moment after ctx.
func lingering(ctx context.Context) (keep context.Context, release context.CancelFunc) {
	keep, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(linger)
		defer timer.Stop()
		select {
		case <-timer.C:
			end(context.Cause(ctx))
		case <-keep.Done():
		}
	})
	return keep, func() {
		stop()
		end(nil)
	}
}

// carryOut takes the turn from wherever it stands to its end. looked returns
// when the inbox has been looked at a moment ago; what it finds ends ctx.
func (t *working) carryOut(ctx, keep context.Context, looked func(context.Context) error) (*harnessv1.Outcome, error) {
	admits := t.admits()
	opening := turn.Open(t.s, t.p, t.made, t.facts(ctx), admits)
	if err := t.note(keep, opening.Entry, opening.Appended, opening.Events); err != nil {
		return nil, err
	}
	failpoint.Hit(turn.Name, "claimed")
	end := turn.Ending{ToolTokens: t.offered.tokens}
	var err error
	if admits {
		err = t.admit(ctx, keep)
	}
	if err == nil {
		err = t.work(ctx, keep, looked)
	}
	var failed *turnError
	switch {
	case err == nil:
	case errors.As(err, &failed):
		end.Error = failed.reason
	case interrupt.Stopped(ctx):
		if err := t.kill(keep); err != nil {
			return nil, err
		}
		failpoint.Hit(turn.Name, "killed")
		end.Interrupted = true
	default:
		return nil, err
	}
	end.Now, end.Unbegun = t.w.cfg.Now(), admits && t.p.Admitted == nil
	if end.Seen, err = t.seen(keep); err != nil {
		return nil, err
	}
	outcome, err := turn.Complete(t.journal.Snapshot(), t.p, end)
	if err != nil {
		return nil, err
	}
	t.after(ctx, outcome)
	return outcome, nil
}

// seen says which outcomes of calls came about in the segment before this turn.
func (t *working) seen(ctx context.Context) (func(uint64) bool, error) {
	if !t.p.Answered() {
		return nil, nil
	}
	c, err := t.conversation(ctx)
	if err != nil {
		return nil, err
	}
	first, limit := t.s.GetProgressTracker().GetFirstMessage(), t.s.GetMessageCount()+1
	return func(signature uint64) bool { return c.Seen(signature, first, limit) }, nil
}

// conversation is the conversation up to where it was first needed in this turn.
func (t *working) conversation(ctx context.Context) (*conversation.Conversation, error) {
	if t.loaded == nil {
		var err error
		if t.loaded, err = t.load(ctx); err != nil {
			return nil, err
		}
	}
	return t.loaded, nil
}

// work asks the model and runs the tools, as far as that is still to be done.
func (t *working) work(ctx, keep context.Context, looked func(context.Context) error) error {
	if t.p.NeedsModel() {
		if err := t.ask(ctx, keep); err != nil {
			return err
		}
		failpoint.Hit(turn.Name, "responded")
	}
	if t.p.Unjudged() {
		if err := t.judge(ctx, keep); err != nil {
			return err
		}
	}
	if len(t.p.Unfinished()) == 0 || t.p.Abort != "" {
		return nil
	}
	if err := looked(keep); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if calls := t.p.Unstarted(); len(calls) > 0 {
		entry, events := turn.Start(t.s, t.p, calls, t.host.ledgerID)
		if err := t.note(keep, entry, nil, events); err != nil {
			return err
		}
		failpoint.Hit(turn.Name, "tools_started")
		t.takeover = false // nobody can have sent them before this record
	}
	return t.runTools(ctx, keep)
}

// note appends to the journal and folds the entry into the progress.
func (t *working) note(ctx context.Context, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error {
	if err := t.journal.AppendJournal(ctx, entry, appended, events); err != nil {
		return err
	}
	t.p.Fold(&harnessv1.Record{Appended: appended, Body: &harnessv1.Record_Journal{Journal: entry}})
	return nil
}

// turnError ends a turn with a typed error.
type turnError struct{ reason *harnessv1.TurnError }

func (e *turnError) Error() string { return e.reason.GetMessage() }
