package turnserver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// serverTools returns the tools of the servers of a run; nil if it has none.
func (w *Server) serverTools(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (*mcptool.Index, error) {
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

// serverCall returns what a tool host has to know of a call of a server's tool; nil for others. A
// call under a changed definition runs only once a person has approved it.
func (t *execution) serverCall(name string) *harnessv1.McpCall {
	tool := t.state.Tools.Servers.Lookup(name)
	if tool == nil {
		return nil
	}
	s := t.state.Snapshot
	call := &harnessv1.McpCall{
		Tool: tool.GetDefinition().GetTool(), Schema: tool.GetDefinition().GetSchema(), Digests: []string{tool.GetDefinition().GetDigest()},
		Sandbox: s.GetConfig().GetSandbox(), Local: s.GetMcp().GetLocal(), Asks: turn.AsksUser(s, t.state.Definition),
	}
	for _, server := range t.state.Definition.Mcp {
		if server.GetName() == tool.GetServer() {
			call.Server, call.Remembered = server, mcptool.Remembered(server, tool.GetDefinition())
		}
	}
	if c := tool.GetChange(); c != nil {
		call.Digests, call.Approved = []string{c.GetDigest()}, true
		call.Remembered = false // what the new definition says is not known here
	}
	return call
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
