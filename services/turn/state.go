package turn

import (
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/services/turn/offer"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
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
	// Offer is what the model can call in this turn.
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

// Call is a tool call that a tool host runs.
type Call struct {
	ID           string
	Tool         string
	Arguments    *harnessv1.Content
	ParallelSafe bool
	Idempotent   bool
	// Marks of the result; nil in runs without compaction.
	Marks *harnessv1.ResultMarks
	// Level of a command, and hosts that it reaches in addition to those of its run.
	Level harnessv1.SandboxLevel
	Hosts []string
	// Guarded is true if the call may write the guarded file that its path names.
	Guarded bool
	// Shown is what a person was shown that the call changes.
	Shown []*harnessv1.FilePreview
	// Changes is what a person changed in its arguments, with which its result begins.
	Changes string
	// Question is the last question of its server, with the answers, after which the call
	// continues; nil at its beginning.
	Question *harnessv1.ServerQuestion
}

// HostID returns the id of the call for its tool host, which runs each part of a call once.
func (c Call) HostID() string { return runstate.RoundID(c.ID, c.Question.GetRound()) }

// Held reports whether the call still runs at the tool host that has its ledger, and waits for the
// answer to a question. No other host can continue it.
func (c Call) Held() bool { return c.Question.GetLedgerId() != "" }

// Topics that a turn fires.
const (
	beforeStep = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP
	afterStep  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP
	beforeCall = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
	afterCall  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	onError    = harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR
)

// hooked reports whether one of the topics has subscribers.
func (s *State) hooked(topics ...harnessv1.HookTopic) bool {
	return s.Snapshot.GetConfig().GetHooks().GetEnabled() && s.Definition.Hooks.Any(topics...)
}

// callsHooked reports whether calls have subscribers, so that a response is
// stored before its calls are judged.
func (s *State) callsHooked() bool { return s.hooked(beforeCall, afterCall, onError) }

// fire returns the firing of a topic. key distinguishes it from other firings of
// the turn.
func (s *State) fire(p *Progress, topic harnessv1.HookTopic, key, tool string, payload map[string]any) FireHooks {
	return FireHooks{Point: hook.Point{
		Topic: topic, Turn: p.Number, Tool: tool,
		Key:     fmt.Sprintf("%d.%d.%d/%s", p.Number, s.Snapshot.GetMessageCount(), s.Snapshot.GetParkVersion(), key),
		Payload: runstate.HookPayload(s.Snapshot, payload),
	}}
}

// window returns the largest prompt that a model takes, 0 if it is unknown.
func (s *State) window(ref string) uint32 {
	if s.Window == nil {
		return 0
	}
	return s.Window(ref)
}

// Times within which a tool host that does not answer is given up.
const (
	// HostPause is the wait before a tool host that cannot be reached is tried again.
	HostPause = 250 * time.Millisecond
	// movePatience is how long a host may be unreachable before a call that has not
	// begun there is moved to another.
	movePatience = 2 * time.Second
	// joined is how long a try lasts that has reached its host.
	joined = 5 * time.Second
)
