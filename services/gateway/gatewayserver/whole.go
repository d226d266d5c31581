package gatewayserver

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// whole replaces references to arguments by their texts: a person decides about the whole
// call.
type whole struct {
	s    *Server
	ctx  context.Context //nolint:containedctx // of the one response that it is for
	run  runlog.Run
	room uint64
}

func (s *Server) whole(ctx context.Context, run runlog.Run) *whole {
	return &whole{s: s, ctx: ctx, run: run, room: runstate.ShownBytes}
}

// text returns the whole text, or c if it is inline, too long or cannot be read.
func (w *whole) text(c *harnessv1.Content) *harnessv1.Content {
	ref := c.GetBlob()
	if ref == nil || ref.GetSize() > w.room {
		return c
	}
	data, err := w.s.log.Blob(w.ctx, w.run, ref.GetDigest())
	if err != nil {
		w.s.logger.Warn("the arguments of a call stay a reference", "namespace", w.run.Namespace, "run", w.run.ID, "error", err)
		return c
	}
	w.room -= ref.GetSize()
	return content.Inline(string(data))
}

// calls returns pending calls; those that wait for an approval or a review have their
// arguments inline, and those whose server asks have its words inline, without its state. The
// calls themselves stay unchanged.
func (w *whole) calls(pending []*harnessv1.PendingCall) []*harnessv1.PendingCall {
	pending = slices.Clone(pending)
	for i, call := range pending {
		if decided(call.GetKind()) {
			pending[i] = proto.CloneOf(call)
			pending[i].Arguments = w.text(call.GetArguments())
			w.preview(pending[i].GetPreview())
		}
		if call.GetQuestion() != nil {
			pending[i] = proto.CloneOf(call)
			w.question(pending[i].GetQuestion())
		}
	}
	return pending
}

// preview puts the diffs into a preview, which it changes.
func (w *whole) preview(p *harnessv1.CallPreview) {
	for _, f := range p.GetFiles() {
		f.Diff = w.text(f.GetDiff())
	}
}

// question puts the words of a server into its question, which it changes.
func (w *whole) question(q *harnessv1.ServerQuestion) {
	q.State = nil
	for _, r := range q.GetRequests() {
		r.Message, r.Schema, r.Url = w.text(r.GetMessage()), w.text(r.GetSchema()), w.text(r.GetUrl())
	}
}

// event puts the arguments of a call that waits for an approval or a review into its events,
// which it changes.
func (w *whole) event(e *harnessv1.Event) {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_ApprovalRequested:
		v.ApprovalRequested.Arguments = w.text(v.ApprovalRequested.GetArguments())
		w.preview(v.ApprovalRequested.GetPreview())
	case *harnessv1.Event_ToolQuestion:
		w.question(v.ToolQuestion.GetQuestion())
	case *harnessv1.Event_ToolCall:
		if decided(v.ToolCall.GetAwaits()) {
			v.ToolCall.Arguments = w.text(v.ToolCall.GetArguments())
		}
	}
}

// decided reports whether a person decides about calls of a kind.
func decided(kind string) bool { return kind == runstate.KindApproval || kind == runstate.KindReview }
