package turnserver

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// Turn carries out a turn for an orchestrator of one's own: with its effects,
// and without a record of it.
func (w *Server) Turn(req *harnessv1.TurnRequest, stream grpc.ServerStreamingServer[harnessv1.TurnResponse]) error {
	in := req.GetInput()
	if in.GetStep().GetSnapshot() == nil {
		return fault.Invalid("input.step.snapshot", "is required: the state that the turn stands on")
	}
	run := runlog.Run{Namespace: in.GetNamespace(), ID: in.GetRunId()}
	if !run.Valid() {
		return fault.Invalid("input.run_id", "namespace and run_id must match %s", runlog.Name)
	}
	in = proto.CloneOf(in)
	runstate.FillDefaults(in.GetStep().GetSnapshot(), harnessv1.Phase_PHASE_EXECUTING)
	ctx := stream.Context()
	h, err := w.toolHost(ctx, false)
	if err != nil {
		return err
	}
	made, err := w.definitions.Load(ctx, run, in.GetStep().GetSnapshot())
	if err != nil {
		return err
	}
	o, err := w.offer(ctx, run, in.GetStep().GetSnapshot(), made, h)
	if err != nil {
		return err
	}
	out := &streamed{stream: stream, task: executor.NewTask(in)}
	t := &working{
		w: w, run: run, s: in.GetStep().GetSnapshot(), p: turn.Begin(in.GetStep()), journal: out, host: h, offered: o, made: made, unlogged: true,
		delta: func(d *harnessv1.Delta) {
			out.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Delta{Delta: d}})
		},
		load: func(context.Context) (*conversation.Conversation, error) {
			c := &conversation.Conversation{}
			c.Fold(&harnessv1.Record{Version: in.GetVersion(), Appended: req.GetConversation()})
			return c, nil
		},
	}
	outcome, err := t.carryOut(ctx, context.WithoutCancel(ctx), func(context.Context) error { return nil })
	if err != nil {
		return err
	}
	for _, e := range outcome.GetEvents() {
		out.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Event{Event: e}})
	}
	// The messages of the journal and of the step, as one: nothing of it was
	// appended to a log.
	outcome.Appended = append(out.appended, outcome.GetAppended()...)
	return stream.Send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Outcome{Outcome: outcome}})
}

// streamed is a journal that goes to the caller instead of a log.
type streamed struct {
	stream grpc.ServerStreamingServer[harnessv1.TurnResponse]
	task   *executor.Task

	mu       sync.Mutex
	appended []*harnessv1.Message
}

func (j *streamed) AppendJournal(_ context.Context, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error {
	j.mu.Lock()
	next := j.task.Step().GetSnapshot().GetMessageCount() + uint64(len(j.appended))
	for _, m := range appended {
		next++
		m.Id = next
	}
	j.appended = append(j.appended, appended...)
	j.mu.Unlock()
	j.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Journal{Journal: entry}})
	for _, e := range events {
		j.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Event{Event: e}})
	}
	return nil
}

func (j *streamed) Snapshot() *harnessv1.Snapshot {
	s := j.task.Snapshot()
	j.mu.Lock()
	defer j.mu.Unlock()
	s.MessageCount += uint64(len(j.appended))
	if s.TokenBudget == nil {
		s.TokenBudget = &harnessv1.TokenBudget{}
	}
	for _, m := range j.appended {
		s.TokenBudget.UnreportedBytes += runstate.MessageBytes(m)
	}
	return s
}

// send passes an update on. A caller that has left ends the turn by its context.
func (j *streamed) send(r *harnessv1.TurnResponse) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.stream.Send(r)
}
