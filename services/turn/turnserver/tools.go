package turnserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// host is a tool host: its ledger, its tools, and the offers made with them.
type host struct {
	tools    []*harnessv1.ToolSpec
	ledgerID string
	sandbox  *harnessv1.SandboxSupport

	mu     sync.Mutex
	offers map[offerKey]*offer.Offer
}

// toolHost returns the tool host as it was described first, or describes it again.
func (w *Server) toolHost(ctx context.Context, again bool) (*host, error) {
	w.mu.Lock()
	have := w.host
	w.mu.Unlock()
	if have != nil && !again {
		return have, nil
	}
	r, err := w.cfg.ToolHost.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
	if err != nil {
		return nil, executor.Retry("tool host", err)
	}
	h := &host{tools: r.GetTools(), ledgerID: r.GetLedgerId(), sandbox: r.GetSandbox(), offers: map[offerKey]*offer.Offer{}}
	w.mu.Lock()
	w.host = h
	w.mu.Unlock()
	return h, nil
}

// otherLedger returns the ledger of the tool host that answers now; empty if none
// does or it is the same.
func (w *Server) otherLedger(ctx context.Context, ledgerID string) string {
	if h, err := w.toolHost(ctx, true); err == nil && h.ledgerID != ledgerID {
		return h.ledgerID
	}
	return ""
}

// inspect reads the instruction files and the changed files of the workspace.
// A turn without them continues: it shows them when they can be read again.
func (t *execution) inspect(ctx context.Context, a turn.Inspect) turn.Event {
	defer executor.Waits(ctx)()
	r := t.inspectAt(ctx, "", a.InstructionsOnly, nil)
	started := map[string][]*harnessv1.BackgroundCommand{}
	for _, c := range t.state.Snapshot.GetBackgroundCommands() {
		started[c.GetLedgerId()] = append(started[c.GetLedgerId()], c)
	}
	for _, ledger := range slices.Sorted(maps.Keys(started)) {
		if b := t.inspectAt(ctx, ledger, true, started[ledger]); r != nil {
			r.Background = append(r.Background, b.GetBackground()...)
		}
	}
	return turn.Inspected{Response: r}
}

// inspectAt asks the tool host with a ledger, any if it is empty, also for the states of
// background commands that were started under it.
func (t *execution) inspectAt(ctx context.Context, ledger string, instructionsOnly bool, started []*harnessv1.BackgroundCommand) *harnessv1.InspectWorkspaceResponse {
	r, err := t.server.cfg.ToolHost.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{
		Workspace: t.state.Snapshot.GetWorkspace(), Namespace: t.run.Namespace, RunId: t.run.ID,
		FirstSequence: t.state.Snapshot.GetFirstSequence(), InstructionsOnly: instructionsOnly, Background: started, LedgerId: ledger,
	})
	if err != nil {
		t.server.cfg.Logger.WarnContext(ctx, "inspect workspace", "run", t.run.ID, "error", err)
		return nil
	}
	return r
}

// offerKey is what decides which of a host's tools a run has.
type offerKey struct {
	clients    string // digest of the tools that clients run
	questions  bool
	items      bool // work items
	compaction bool
	mode       string
	definition string // digest; empty if nothing of the definition decides
	artifacts  string // kinds that the run saves
	skills     bool
	servers    string // state of the servers
	waits      bool
}

// maxOffers bounds the offers that are kept. Runs whose clients declare the same
// tools share one.
const maxOffers = 64

// state returns what a turn of a run is decided on.
func (w *Server) state(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (*turn.State, error) {
	h, err := w.toolHost(ctx, false)
	if err != nil {
		return nil, err
	}
	definition, err := w.definitions.Load(ctx, run, s)
	if err != nil {
		return nil, err
	}
	offer, err := w.offer(ctx, run, s, definition, h)
	if err != nil {
		return nil, err
	}
	return &turn.State{Run: run, Snapshot: s, Definition: definition, Offer: offer, Ledger: h.ledgerID, Sandbox: h.sandbox, Window: w.cfg.Window}, nil
}

// offer returns the tools that the model of a run may call. Its error does not fail the run if
// the declared tools cannot be read now.
func (w *Server) offer(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot, definition *agent.Definition, h *host) (*offer.Offer, error) {
	key := offerKey{
		clients: s.GetClientTools().GetBlob().GetDigest(), questions: offer.AsksUser(s, definition),
		items: s.GetConfig().GetWorkItems().GetEnabled(), compaction: s.GetConfig().GetContext().GetCompaction(), mode: runstate.Mode(s),
		waits: offer.Waits(s, definition), artifacts: strings.Join(definition.ArtifactKinds(s), " "), skills: s.GetSkills(),
	}
	if len(definition.Modes) > 0 || definition.Output != nil || definition.Web != nil || len(definition.Agents) > 0 || len(definition.OnlyTools) > 0 || definition.ReadOnly {
		key.definition = definition.Digest
	}
	if m := s.GetMcp(); m != nil {
		key.servers, key.definition = fmt.Sprint(m.GetDigest(), m.GetFinder(), m.GetHidden(), s.GetAutonomous()), definition.Digest
	}
	if text := s.GetClientTools().GetInline(); text != "" { // in a hand-written state
		key.clients = content.Digest([]byte(text))
	}
	h.mu.Lock()
	have := h.offers[key]
	h.mu.Unlock()
	if have != nil {
		return have, nil
	}
	clients := &harnessv1.ClientTools{}
	if s.GetClientTools() != nil {
		text, err := w.text(ctx, run, s.GetClientTools())
		if err != nil {
			return nil, fmt.Errorf("read the client tools: %w", err)
		}
		if clients, err = offer.ParseClientTools(text.GetInline()); err != nil {
			return nil, fmt.Errorf("parse the client tools: %w", err)
		}
	}
	servers, err := w.serverTools(ctx, run, s)
	if err != nil {
		return nil, err
	}
	offer, err := offer.New(s, h.tools, clients, servers, definition)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.offers) >= maxOffers {
		clear(h.offers)
	}
	h.offers[key] = offer
	return offer, nil
}
