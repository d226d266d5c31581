package turnserver

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// offer is what decides which tools a run is offered by a tool host.
type offer struct {
	clients string // digest of the tools that clients run
	asks    bool   // questions
	items   bool   // work items
	mode    string
	made    string // digest of the definition, for modes of its own
}

// offered are the tools that the model of a run is offered, with compiled schemas.
type offered struct {
	tools   *tool.Set
	blocked map[string]bool // by the mode of work
	tokens  uint32
}

// bytesPerSchemaToken is on the safe side of what schemas need. They are a few
// hundred tokens and count only until a provider has reported the real number,
// so they are not worth loading a vocabulary for.
const bytesPerSchemaToken = 3

// maxOffers bounds the compiled sets of tools that are kept. Runs whose clients
// declare the same tools share one.
const maxOffers = 64

// offer returns what a run is offered. Its error says nothing against the run when
// the declared tools cannot be read now.
func (w *Server) offer(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot, made *agent.Definition, h *host) (*offered, error) {
	key := offer{
		clients: s.GetClientTools().GetBlob().GetDigest(), asks: turn.AsksUser(s, made),
		items: s.GetConfig().GetWorkItems().GetEnabled(), mode: runstate.Mode(s),
	}
	if len(made.Modes) > 0 {
		key.made = made.Digest
	}
	if text := s.GetClientTools().GetInline(); text != "" { // in a state that somebody made by hand
		key.clients = content.Digest([]byte(text))
	}
	h.mu.Lock()
	have := h.offered[key]
	h.mu.Unlock()
	if have != nil {
		return have, nil
	}
	clients := &harnessv1.ClientTools{}
	if s.GetClientTools() != nil {
		text, err := w.text(ctx, run, s.GetClientTools())
		if err != nil {
			return nil, fmt.Errorf("tools that clients run: %w", err)
		}
		if clients, err = turn.ParseClientTools(text.GetInline()); err != nil {
			return nil, fmt.Errorf("tools that clients run: %w", err)
		}
	}
	specs, blocked := turn.Offered(s, h.tools, clients, made)
	set, err := tool.NewSet(specs)
	if err != nil {
		return nil, fmt.Errorf("offered tools: %w", err)
	}
	o := &offered{tools: set, blocked: blocked}
	for _, t := range specs {
		o.tokens += uint32(len(t.GetName())+len(t.GetDescription())+len(t.GetParametersSchema())) / bytesPerSchemaToken //nolint:gosec // a few KB
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.offered) >= maxOffers {
		clear(h.offered)
	}
	h.offered[key] = o
	return o, nil
}
