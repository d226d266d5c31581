package turnserver

import (
	"context"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// journal stores the records of a turn: in the run's log, or at the caller of the
// gRPC form.
type journal interface {
	AppendJournal(ctx context.Context, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error
}

// execution is one turn that this worker performs.
type execution struct {
	server   *Server
	run      runlog.Run
	state    *turn.State
	progress *turn.Progress
	journal  journal
	delta    func(*harnessv1.Delta)
	load     func(ctx context.Context) (*conversation.Conversation, error)
	inbox    *interrupt.Inbox // nil for the gRPC form
	unstored bool             // the caller of the gRPC form has the turn: no log, no blobs

	request      *model.Request             // once it is prepared
	conversation *conversation.Conversation // that the request is made of
	written      string                     // by the agent in the attempt before this turn
	facts        *turn.RequestFacts         // of the request, once it is described
	ends         chan turn.Event
	calls        sync.WaitGroup
}

// Execute performs a turn, or the rest of it.
func (w *Server) Execute(ctx context.Context, task *executor.Task) (*harnessv1.Outcome, error) {
	s := task.Step().GetSnapshot()
	state, err := w.state(ctx, task.Run, s)
	if err != nil {
		return nil, err
	}
	records := make([]*harnessv1.Record, 0, len(task.Journal))
	for _, e := range task.Journal {
		records = append(records, e.Record)
	}
	state.Shows = func(c *conversation.Conversation, id uint64) bool { return w.shows(task.Run, s, c, id) }
	t := &execution{
		server: w, run: task.Run, state: state, progress: turn.New(state, w.cfg.Now(), records...), journal: task,
		delta: func(d *harnessv1.Delta) {
			if err := w.cfg.Log.PublishDelta(task.Run, d); err != nil {
				w.cfg.Logger.DebugContext(ctx, "publish delta", "run", task.Run.ID, "error", err)
			}
		},
		load: func(ctx context.Context) (*conversation.Conversation, error) {
			return w.conversations.Load(ctx, s.GetFirstSequence(), task.Tail())
		},
	}
	// A stop of the turn must not stop the records about it. They get more time, also
	// when the step is lost or this process stops.
	lasting, release := outlast(ctx)
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if deadline, ok := runstate.WallClockDeadline(s); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, deadline, interrupt.ErrOutOfTime)
		defer stop()
	}
	inbox, stop := w.active.Inbox(ctx, cancel, task.Run, s)
	defer stop()
	t.inbox = inbox
	task.OnHeartbeat(func(ctx context.Context, view runlog.View) {
		if view.InboxSequence > s.GetInboxCursor() {
			_ = inbox.Check(ctx) // the next heartbeat tries again
		}
	})
	return t.loop(ctx, lasting)
}

// loop performs the turn's actions until it ends. The end of ctx stops the turn;
// what must be done nevertheless uses lasting.
func (t *execution) loop(ctx, lasting context.Context) (*harnessv1.Outcome, error) {
	t.ends = make(chan turn.Event, turn.MaxParallel)
	defer t.calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		action := turn.Next(t.state, t.progress)
		switch a := action.(type) {
		case turn.Return:
			if a.Stopped {
				failpoint.Hit(turn.Name, "killed")
			}
			return a.Outcome, nil
		case turn.Fail:
			return nil, a.Err
		}
		event := t.perform(ctx, lasting, action)
		if cause := context.Cause(ctx); cause != nil {
			t.progress.Stop(cause, interrupt.Stopped(ctx))
		}
		if err := t.progress.Observe(t.state, t.server.cfg.Now(), action, event); err != nil {
			return nil, err
		}
	}
}

// perform performs an action and returns the event that answers it.
func (t *execution) perform(ctx, lasting context.Context, action turn.Action) turn.Event {
	switch a := action.(type) {
	case turn.Append:
		return t.append(lasting, a)
	case turn.Inspect:
		return t.inspect(ctx, a)
	case turn.FireHooks:
		return t.fireHooks(ctx, a)
	case turn.LoadConversation:
		if a.Closing {
			ctx = lasting
		}
		return t.loadConversation(ctx)
	case turn.PrepareRequest:
		return t.prepareRequest(ctx, a)
	case turn.AskModel:
		return t.askModel(ctx, a)
	case turn.Wait:
		return t.wait(ctx, a)
	case turn.ReadArguments:
		return t.readArguments(ctx, a)
	case turn.ReadMessages:
		return t.readMessages(ctx, a)
	case turn.ProposeCalls:
		return t.propose(ctx, a)
	case turn.CheckInbox:
		return t.checkInbox(lasting, a)
	case turn.SendCall:
		return t.sendCall(ctx, a)
	case turn.AwaitCall:
		return t.awaitCall(ctx)
	case turn.CancelCalls:
		return t.cancelCalls(lasting, a)
	case turn.FindHost:
		return t.findHost(lasting, a)
	case turn.FetchResult:
		return t.fetchResult(lasting, a)
	}
	return nil
}

// outlastTime is how long records may still be stored after the work was ended.
const outlastTime = 5 * time.Second

// outlast returns a context that ends 5 seconds after ctx, or on release.
func outlast(ctx context.Context) (lasting context.Context, release context.CancelFunc) {
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(outlastTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			end(context.Cause(ctx))
		case <-lasting.Done():
		}
	})
	return lasting, func() {
		stop()
		end(nil)
	}
}
