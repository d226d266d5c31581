package turnserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// maxShown bounds the messages in memory that differ from the stored ones, in bytes.
const maxShown = 64 << 20

// render returns exactly what the models of a turn are sent: the view of the conversation
// with all contents inline, and the tools. Opaque parts and media may be in blobs. It is the
// only place that makes requests, for turns and for Prepare.
func (w *Server) render(ctx context.Context, run runlog.Run, state *turn.State, c *conversation.Conversation) (*harnessv1.ModelRequest, error) {
	s := state.Snapshot
	cfg := s.GetConfig()
	messages, err := w.shown.Messages(ctx, run, s.GetModel(), runstate.ShownTokens(cfg), cfg.GetContext().GetCompaction(), conversation.View(c.Messages))
	if err != nil {
		return nil, err
	}
	return &harnessv1.ModelRequest{Model: s.GetModel(), Messages: messages, Tools: state.Tools.Specs()}, nil
}
