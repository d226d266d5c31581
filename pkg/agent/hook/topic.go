package hook

import (
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Topic is a place in the loop at which hooks are called.
type Topic struct {
	// ID of the topic in protos and files. Its name is TopicName(ID).
	ID harnessv1.HookTopic
	// Fires is the time at which hooks of the topic are called, for the documentation.
	Fires string
	// Payload has the fields of its payload. Every payload also has max_turns,
	// turn_count and mode.
	Payload []string
	// Replaceable is the field of the payload that REPLACE may change; empty if there is
	// none.
	Replaceable string
	// Actions are those that a hook may return. CONTINUE is always allowed.
	Actions []harnessv1.HookAction
	// Refusal is the action that the failure of a hook counts as if the hook fails
	// closed: DENY, BLOCK or ABORT, and CONTINUE where a hook can stop nothing.
	Refusal harnessv1.HookAction
	// FailsClosed is the default of on_failure.
	FailsClosed bool
	// PerTool is true if a hook may subscribe to the calls of certain tools only.
	PerTool bool
	// ObservesOnly is true if hooks can neither change anything nor add context.
	ObservesOnly bool
}

const (
	fieldPlan      = "plan"
	fieldArguments = "arguments"
	fieldResult    = "result"
)

// topics has one row for each topic: adding a topic takes its value in the proto, a row
// here, a line at the place where it fires, and its row in docs/hooks.md.
var topics = []Topic{
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_SESSION_START, Fires: "a segment starts",
		Payload: []string{"goal", "segment"}, Refusal: carryOn,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_PLAN, Fires: "before a plan is drafted",
		Payload: []string{fieldPlan}, Replaceable: fieldPlan, Actions: steering(replace), Refusal: abort,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_AFTER_PLAN, Fires: "before a plan is final",
		Payload: []string{fieldPlan}, Replaceable: fieldPlan, Actions: steering(replace), Refusal: abort,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP, Fires: "before a turn starts",
		Actions: steering(), Refusal: abort,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP, Fires: "a turn has ended, other than by an interrupt, a cancel or the wall clock",
		Payload: []string{"outcome", "error"}, Actions: steering(), Refusal: abort,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, Fires: "before a tool call",
		Payload: []string{"call_id", "tool", fieldArguments}, Replaceable: fieldArguments,
		Actions: steering(replace, deny), Refusal: deny, FailsClosed: true, PerTool: true,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Fires: "after a tool call that ran; for a [sub-agent](agents.md) in the background when the model gets its result, with empty `arguments`",
		Payload: []string{"call_id", "tool", fieldArguments, fieldResult, "is_error"}, Replaceable: fieldResult,
		Actions: steering(replace), Refusal: abort, PerTool: true,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, Fires: "a call or a turn has ended with an error",
		Payload: []string{"error", "call_id", "tool", fieldArguments}, Actions: steering(), Refusal: abort, PerTool: true,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Fires: "every other check lets the run end as done",
		Payload: []string{"called_work_complete", "tool_usage", "work_items", "contract", "summary", "answer"},
		Actions: steering(block), Refusal: block,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, Fires: "the run parks with `session.pause`",
		Payload: []string{"kind", "message"}, Refusal: carryOn, ObservesOnly: true,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_ON_BUDGET_EXCEEDED, Fires: "a budget is used up",
		Payload: []string{"budget", "limit", "used"}, Refusal: carryOn, ObservesOnly: true,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, Fires: "the run ends",
		Payload: []string{"status", "accepted", "kind", "message"}, Refusal: carryOn, ObservesOnly: true,
	},
	{
		ID: harnessv1.HookTopic_HOOK_TOPIC_SESSION_END, Fires: "a segment ends",
		Payload: []string{"status", "accepted", "kind", "message"}, Refusal: carryOn, ObservesOnly: true,
	},
}

// steering returns the actions that steer the rest of the loop, and more.
func steering(more ...harnessv1.HookAction) []harnessv1.HookAction {
	return append([]harnessv1.HookAction{
		harnessv1.HookAction_HOOK_ACTION_SKIP, abort,
		harnessv1.HookAction_HOOK_ACTION_PAUSE, harnessv1.HookAction_HOOK_ACTION_REPLAN,
	}, more...)
}

// findTopic returns the topic with an id. ok is false if there is none.
func findTopic(id harnessv1.HookTopic) (t *Topic, ok bool) {
	for i := range topics {
		if topics[i].ID == id {
			return &topics[i], true
		}
	}
	return nil, false
}

func (t *Topic) Name() string { return TopicName(t.ID) }

// allows reports whether a hook of the topic may return an action.
func (t *Topic) allows(a harnessv1.HookAction) bool {
	return a == carryOn || slices.Contains(t.Actions, a)
}

// actionNames lists the actions of the topic without one, for error texts.
func (t *Topic) actionNames(without harnessv1.HookAction) string {
	names := []string{ActionName(carryOn)}
	for _, a := range t.Actions {
		if a != without {
			names = append(names, ActionName(a))
		}
	}
	return strings.Join(names, ", ")
}

// perToolNames lists the topics at which a hook may subscribe to certain tools.
func perToolNames() string {
	var names []string
	for i := range topics {
		if topics[i].PerTool {
			names = append(names, topics[i].Name())
		}
	}
	return strings.Join(names, ", ")
}

// TopicName returns the name of a topic in files and events, such as before_tool_call.
func TopicName(id harnessv1.HookTopic) string {
	return strings.ToLower(strings.TrimPrefix(id.String(), "HOOK_TOPIC_"))
}

// Refusal returns the strongest action with which a hook of a topic can stop something:
// DENY, BLOCK or ABORT, or CONTINUE where it cannot.
func Refusal(id harnessv1.HookTopic) harnessv1.HookAction {
	if t, ok := findTopic(id); ok {
		return t.Refusal
	}
	return carryOn
}

// FailsClosed reports whether a failure of h counts as a refusal.
func FailsClosed(h *harnessv1.Hook) bool {
	switch h.GetOnFailure() {
	case harnessv1.HookFailure_HOOK_FAILURE_CLOSED:
		return true
	case harnessv1.HookFailure_HOOK_FAILURE_OPEN:
		return false
	default: // the default of the topic
	}
	t, ok := findTopic(h.GetTopic())
	return ok && t.FailsClosed
}
