package turnserver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// serverTools returns the tools of the servers of a run; nil if it has none.
func (w *Server) serverTools(ctx context.Context, run runlog.Run, s runstate.DefinitionFields) (*mcptool.Index, error) {
	if s.GetMcp() == nil {
		return nil, nil
	}
	text, err := w.text(ctx, run, s.GetMcp().GetTools())
	if err != nil {
		return nil, fmt.Errorf("read the tools of servers: %w", err)
	}
	tools, err := mcptool.Decode(text.GetInline())
	if err != nil {
		return nil, fmt.Errorf("parse the tools of servers: %w", err)
	}
	return mcptool.NewIndex(tools), nil
}

// question returns an answered question with what its server needs to continue, inline.
func (w *Server) question(ctx context.Context, run runlog.Run, q *harnessv1.ServerQuestion) (*harnessv1.ServerQuestion, error) {
	q = proto.CloneOf(q)
	q.Requests = nil
	if ref := q.GetState().GetBlob(); ref != nil {
		data, err := w.blobs.read(ctx, run, ref.GetDigest())
		if err != nil {
			return nil, fmt.Errorf("read the state of a question: %w", err)
		}
		q.State = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: data}}
	}
	for _, r := range q.GetResponses() {
		if r.Content == nil {
			continue
		}
		values, err := w.text(ctx, run, r.GetContent())
		if err != nil {
			return nil, fmt.Errorf("read the answer to a question: %w", err)
		}
		r.Content = values
	}
	return q, nil
}
