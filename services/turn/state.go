package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/turn/hookpoint"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// State is what a turn is decided on in addition to its progress. It does not
// change while a worker has the turn.
type State struct {
	// Run is the run of the turn.
	Run runlog.Run
	// Snapshot of the step; shared, never changed.
	Snapshot *harnessv1.Snapshot
	// Definition of the run.
	Definition *agent.Definition
	// Offer has the tools that the model can call in this turn.
	Offer *offer.Offer
	// Ledger is the id of the ledger of the tool host on which calls start.
	Ledger string
	// Sandbox is how far the tool host can confine commands; nil for one that cannot.
	Sandbox *harnessv1.SandboxSupport
	// Window returns the largest prompt that a model takes, in tokens, 0 if it is
	// unknown. Nil: all are unknown.
	Window func(ref string) uint32
	// Shows reports whether the view of the turn shows a message of a conversation
	// unchanged. Nil: the turn indexes the conversation if it has to know.
	Shows func(c *conversation.Conversation, id uint64) bool
}

// hooked reports whether one of the topics has subscribers.
func (s *State) hooked(topics ...harnessv1.HookTopic) bool {
	return hookpoint.Subscribed(s.Snapshot, s.Definition, topics...)
}

// callsHooked reports whether calls have subscribers, so that a response is
// stored before its calls are judged.
func (s *State) callsHooked() bool {
	return s.hooked(hookpoint.BeforeCall, hookpoint.AfterCall, hookpoint.OnError)
}

// fire returns the firing of a topic. key distinguishes it from other firings of
// the turn.
func (s *State) fire(turn uint32, topic harnessv1.HookTopic, key, tool string, payload map[string]any) FireHooks {
	return FireHooks{Point: hookpoint.New(s.Snapshot, turn, topic, key, tool, payload)}
}

// window returns the largest prompt that a model takes, 0 if it is unknown.
func (s *State) window(ref string) uint32 {
	if s.Window == nil {
		return 0
	}
	return s.Window(ref)
}

// Requests returns the run whose calls are sent to tool hosts.
func (s *State) Requests() toolcall.Run {
	return toolcall.Run{Run: s.Run, Snapshot: s.Snapshot, Definition: s.Definition, Offer: s.Offer}
}
