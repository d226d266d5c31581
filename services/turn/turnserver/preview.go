package turnserver

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// preview is a journal that keeps the conversation and stores nothing.
type preview struct{ messages []*harnessv1.Message }

// AppendJournal adds the messages.
func (p *preview) AppendJournal(_ context.Context, _ *harnessv1.Journal, appended []*harnessv1.Message, _ []*harnessv1.Event) error {
	p.messages = append(p.messages[:len(p.messages):len(p.messages)], appended...)
	return nil
}

// Prepare returns the request that the model would be sent in a turn, without opaque parts. It
// performs the turn up to the request, without subscribers, and stores nothing.
func (w *Server) Prepare(ctx context.Context, req *harnessv1.PrepareRequest) (*harnessv1.PrepareResponse, error) {
	in := proto.CloneOf(req.GetInput())
	s := in.GetStep().GetSnapshot()
	if s == nil {
		return nil, fault.Invalid("input.step.snapshot", "is required: it is the state that the turn begins with")
	}
	runstate.FillDefaults(s, harnessv1.Phase_PHASE_EXECUTING)
	run := runlog.Run{Namespace: in.GetNamespace(), ID: in.GetRunId()}
	state, err := w.state(ctx, run, s)
	if err != nil {
		return nil, err
	}
	runstate.DisableHooks(s)
	journal := &preview{messages: req.GetConversation()}
	t := &execution{
		server: w, run: run, state: state, progress: turn.New(state, w.cfg.Now()), journal: journal, unstored: true,
		load: func(context.Context) (*conversation.Conversation, error) {
			return &conversation.Conversation{Messages: journal.messages}, nil
		},
	}
	c, err := t.beforeRequest(ctx)
	if err != nil {
		return nil, err
	}
	request, err := w.render(ctx, run, state, c, false)
	if err != nil {
		return nil, err
	}
	shown := make([]*harnessv1.Message, 0, len(request.GetMessages()))
	for _, m := range request.GetMessages() {
		shown = append(shown, opaque.Without(m))
	}
	request.Messages = shown
	return &harnessv1.PrepareResponse{Request: request}, nil
}

// beforeRequest performs the turn up to the request, and returns the conversation then. A
// turn that asks no model has that of its beginning.
func (t *execution) beforeRequest(ctx context.Context) (*conversation.Conversation, error) {
	for {
		action := turn.Next(t.state, t.progress)
		switch a := action.(type) {
		case turn.Inspect, turn.Append, turn.LoadConversation:
			if err := t.progress.Observe(t.state, t.server.cfg.Now(), action, t.perform(ctx, ctx, action)); err != nil {
				return nil, err
			}
		case turn.PrepareRequest:
			return a.Conversation, nil
		default:
			return t.load(ctx)
		}
	}
}
