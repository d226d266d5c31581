package turnserver

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// maxViewed bounds the messages whose place in a view is in memory, over all runs.
const maxViewed = 500_000

// maxShown bounds the messages in memory that differ from the stored ones, in bytes.
const maxShown = 64 << 20

// render returns the request to the models of a turn: the view of the conversation
// under the plan of compaction, with all contents inline, and the tools. Opaque parts and
// media may be in blobs. It is the only place that makes requests, for turns and for
// Prepare. stored is true if the conversation is that of the run's log.
func (w *Server) render(ctx context.Context, run runlog.Run, state *turn.State, c *conversation.Conversation, stored bool) (*harnessv1.ModelRequest, error) {
	s := state.Snapshot
	cfg := s.GetConfig()
	plan := s.GetCompactionPlan()
	summarized, err := w.summary(ctx, run, plan)
	if err != nil {
		return nil, err
	}
	v := &view.View{}
	if stored {
		v = w.views.Take(run, s.GetFirstSequence(), c)
		defer func() { w.views.Put(run, s.GetFirstSequence(), v) }()
	}
	items := v.Update(c, plan, summarized)
	messages, err := w.shown.View(ctx, run, s.GetModel(), runstate.ShownTokens(cfg), true, items)
	if err != nil {
		return nil, err
	}
	if messages, err = offer.AsWritten(messages); err != nil {
		return nil, err
	}
	return &harnessv1.ModelRequest{Model: s.GetModel(), Messages: messages, Tools: state.Offer.Specs()}, nil
}

// shows reports whether the view of a turn shows a message of the run's conversation
// unchanged. The view is that of the request, if this process has made it.
func (w *Server) shows(run runlog.Run, s *harnessv1.Snapshot, c *conversation.Conversation, id uint64) bool {
	v := w.views.Take(run, s.GetFirstSequence(), c)
	if v.Index.Entry(id) == nil {
		v = &view.View{}
		v.Index.Add(c)
	}
	shown := view.NewRules(s.GetCompactionPlan(), &v.Index).Unchanged(id)
	w.views.Put(run, s.GetFirstSequence(), v)
	return shown
}

// summary returns the summary that a plan refers to; nil if it refers to none.
func (w *Server) summary(ctx context.Context, run runlog.Run, plan *harnessv1.CompactionPlan) (*harnessv1.StructuredSummary, error) {
	if plan.GetSummary() == nil {
		return nil, nil
	}
	data, err := w.blobs.read(ctx, run, plan.GetSummary().GetSummary().GetDigest())
	if err != nil {
		return nil, fmt.Errorf("read the summary of messages up to %d: %w", plan.GetSummary().GetThroughMessage(), err)
	}
	return summary.Decode(data)
}
