package turnserver

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// Turn performs a turn for a custom orchestrator: with its effects, and without
// storing anything.
func (w *Server) Turn(req *harnessv1.TurnRequest, stream grpc.ServerStreamingServer[harnessv1.TurnResponse]) error {
	in := proto.CloneOf(req.GetInput())
	s := in.GetStep().GetSnapshot()
	if s == nil {
		return fault.Invalid("input.step.snapshot", "is required: it is the state that the turn begins with")
	}
	run := runlog.Run{Namespace: in.GetNamespace(), ID: in.GetRunId()}
	if !run.Valid() {
		return fault.Invalid("input.run_id", "namespace and run_id must match %s", runlog.Name)
	}
	runstate.FillDefaults(s, harnessv1.Phase_PHASE_EXECUTING)
	ctx := stream.Context()
	state, err := w.state(ctx, run, s)
	if err != nil {
		return err
	}
	journal := &streamJournal{stream: stream, messages: s.GetMessageCount()}
	t := &execution{
		server: w, run: run, state: state, progress: turn.New(state, w.cfg.Now()), journal: journal, unstored: true,
		delta: func(d *harnessv1.Delta) {
			journal.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Delta{Delta: d}})
		},
		load: func(context.Context) (*conversation.Conversation, error) {
			c := &conversation.Conversation{}
			c.Fold(&harnessv1.Record{Version: in.GetVersion(), Appended: slices.Concat(req.GetConversation(), journal.appended)})
			return c, nil
		},
	}
	outcome, err := t.loop(ctx, context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	for _, e := range outcome.GetEvents() {
		journal.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Event{Event: e}})
	}
	// The outcome has the messages of the journal too: no log holds them.
	outcome.Appended = append(journal.appended, outcome.GetAppended()...)
	return stream.Send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Outcome{Outcome: outcome}})
}

// streamJournal sends the records of a turn to the caller instead of a log.
type streamJournal struct {
	mu       sync.Mutex
	stream   grpc.ServerStreamingServer[harnessv1.TurnResponse]
	messages uint64 // of the conversation
	appended []*harnessv1.Message
}

// AppendJournal numbers the messages and sends the record.
func (j *streamJournal) AppendJournal(_ context.Context, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error {
	for _, m := range appended {
		j.messages++
		m.Id = j.messages
	}
	j.appended = append(j.appended, appended...)
	j.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Journal{Journal: entry}})
	for _, e := range events {
		j.send(&harnessv1.TurnResponse{Update: &harnessv1.TurnResponse_Event{Event: e}})
	}
	return nil
}

// send passes an update on. A caller that has gone away ends the turn by its
// context.
func (j *streamJournal) send(r *harnessv1.TurnResponse) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.stream.Send(r)
}
