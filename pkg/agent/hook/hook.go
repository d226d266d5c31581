// Package hook decides what subscribers make of a run. A subscriber is called at a
// topic, a place in the loop, and may let things go on, put something in the place
// of what it was given, or stand in the way.
//
// The package is pure: it says whom to call, and takes in how that went. Package
// hookcaller does the calling. Subscribers that are expressions are evaluated here.
//
// # A firing
//
// Set.Fire goes through the subscribers of a topic in the order in which they
// stand. DENY, BLOCK and ABORT end it: the rest is not called. PAUSE, SKIP and
// REPLAN are remembered, and the rest is called. A subscriber behind one that
// replaced something is given what that one made of it. The strongest action is
// that of the firing, of equal ones the first.
//
// A firing is a function of its point and of the outcomes that were observed, so it
// may be gone through again at any time, also by another process: it asks for the
// same calls under the same keys. A key holds a digest of the payload, so a call is
// made anew when something else is put before the subscriber.
//
// # What a topic allows
//
//	topic                                  replaces    and else
//	session_start                          -           context
//	before_plan, after_plan                plan        skip abort pause replan, context
//	before_step, after_step, on_error      -           skip abort pause replan, context
//	before_tool_call                       arguments   deny skip abort pause replan, context
//	after_tool_call                        result      skip abort pause replan, context
//	agent_stop                             -           block skip abort pause replan, context
//	on_pause, on_budget_exceeded,          -           nothing: they look on
//	on_complete, session_end
//
// # Failing
//
// A subscriber fails when it cannot be reached, takes too long, or says something
// that its topic does not allow or that is too large. Each failure is an event. It
// counts as CONTINUE, or, for a subscriber that fails closed, as DENY before a tool
// call, BLOCK at agent_stop and ABORT elsewhere. Before a tool call subscribers fail
// closed unless they say otherwise.
package hook

import (
	"slices"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds.
const (
	// MaxHooks is how many subscribers a run may have.
	MaxHooks = 64
	// MaxTools is how many tools a subscriber may name.
	MaxTools = 64
	// MaxCommand bounds a command, in bytes.
	MaxCommand = 16 << 10
	// MaxReason, MaxContext and MaxPayload bound what a verdict holds, in bytes.
	MaxReason  = 4 << 10
	MaxContext = 8 << 10
	MaxPayload = 64 << 10
	// MaxRequest bounds the payload that a subscriber is given, in bytes of JSON.
	MaxRequest = 768 << 10
	// MinTimeout and MaxTimeout bound the time that a subscriber may be given.
	MinTimeout = time.Millisecond
	MaxTimeout = 5 * time.Minute
	// DefaultTimeout is the time that a subscriber has when nobody says otherwise.
	DefaultTimeout = 5 * time.Second
)

const (
	fieldPlan      = "plan"
	fieldArguments = "arguments"
	fieldResult    = "result"
)

// rule is what a topic allows besides CONTINUE.
type rule struct {
	// looksOn says that nothing that a subscriber says has an effect.
	looksOn bool
	actions []harnessv1.HookAction
	// replaces is the field that REPLACE may change; empty when there is none.
	replaces string
	// closed is what a failure counts as that counts against what was asked about;
	// CONTINUE where nothing can be held up.
	closed harnessv1.HookAction
	// perTool says that a subscriber may be for certain tools only.
	perTool bool
}

var steers = []harnessv1.HookAction{
	harnessv1.HookAction_HOOK_ACTION_SKIP, harnessv1.HookAction_HOOK_ACTION_ABORT,
	harnessv1.HookAction_HOOK_ACTION_PAUSE, harnessv1.HookAction_HOOK_ACTION_REPLAN,
}

func with(actions ...harnessv1.HookAction) []harnessv1.HookAction {
	return append(slices.Clone(steers), actions...)
}

const (
	abort   = harnessv1.HookAction_HOOK_ACTION_ABORT
	block   = harnessv1.HookAction_HOOK_ACTION_BLOCK
	carryOn = harnessv1.HookAction_HOOK_ACTION_CONTINUE
	deny    = harnessv1.HookAction_HOOK_ACTION_DENY
	replace = harnessv1.HookAction_HOOK_ACTION_REPLACE
)

var rules = map[harnessv1.HookTopic]rule{
	harnessv1.HookTopic_HOOK_TOPIC_SESSION_START:      {closed: carryOn},
	harnessv1.HookTopic_HOOK_TOPIC_BEFORE_PLAN:        {actions: with(replace), replaces: fieldPlan, closed: abort},
	harnessv1.HookTopic_HOOK_TOPIC_AFTER_PLAN:         {actions: with(replace), replaces: fieldPlan, closed: abort},
	harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP:        {actions: with(), closed: abort},
	harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP:         {actions: with(), closed: abort},
	harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL:   {actions: with(replace, deny), replaces: fieldArguments, closed: deny, perTool: true},
	harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL:    {actions: with(replace), replaces: fieldResult, closed: abort, perTool: true},
	harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR:           {actions: with(), closed: abort, perTool: true},
	harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP:         {actions: with(block), closed: block},
	harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE:           {looksOn: true, closed: carryOn},
	harnessv1.HookTopic_HOOK_TOPIC_ON_BUDGET_EXCEEDED: {looksOn: true, closed: carryOn},
	harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE:        {looksOn: true, closed: carryOn},
	harnessv1.HookTopic_HOOK_TOPIC_SESSION_END:        {looksOn: true, closed: carryOn},
}

func (r rule) allows(a harnessv1.HookAction) bool {
	return a == carryOn || slices.Contains(r.actions, a)
}

// TopicName is a topic as people write it, such as before_tool_call.
func TopicName(t harnessv1.HookTopic) string {
	return strings.ToLower(strings.TrimPrefix(t.String(), "HOOK_TOPIC_"))
}

// ActionName is an action as people write it, such as deny; continue when it is not
// set.
func ActionName(a harnessv1.HookAction) string {
	if a == harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED {
		a = carryOn
	}
	return strings.ToLower(strings.TrimPrefix(a.String(), "HOOK_ACTION_"))
}

// ParseAction is the action of a name in lower case; ok is false for any other text.
func ParseAction(name string) (a harnessv1.HookAction, ok bool) {
	n, ok := harnessv1.HookAction_value["HOOK_ACTION_"+strings.ToUpper(name)]
	if !ok || n == 0 || name != strings.ToLower(name) {
		return 0, false
	}
	return harnessv1.HookAction(n), true
}

// Refusal is the strongest action with which a subscriber of a topic stands in the
// way: DENY, BLOCK or ABORT, or CONTINUE where it cannot.
func Refusal(t harnessv1.HookTopic) harnessv1.HookAction {
	if r, ok := rules[t]; ok {
		return r.closed
	}
	return carryOn
}

// FailsClosed says that a failure of h counts against what it is asked about.
func FailsClosed(h *harnessv1.Hook) bool {
	switch h.GetOnFailure() {
	case harnessv1.HookFailure_HOOK_FAILURE_CLOSED:
		return true
	case harnessv1.HookFailure_HOOK_FAILURE_OPEN:
		return false
	}
	return h.GetTopic() == harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
}
