// Package hook decides what the subscribers of a run do to it. A hook is called at a
// topic, a place in the loop. It lets the run continue, replaces a field of what it was
// given, or stops something.
//
// The package is pure: it returns the calls to make and takes their outcomes. Package
// hookcaller makes the calls. Hooks that are expressions are evaluated here.
//
// # Firing
//
// Set.Fire goes through the hooks of a topic in their order. DENY, BLOCK and ABORT end
// it: the remaining hooks are not called. PAUSE, SKIP and REPLAN are recorded, and the
// remaining hooks are called. A hook that follows a replacement receives the replaced
// payload. The strongest action is that of the firing; of equal actions, the first.
//
// A firing is a function of its point and of the observed outcomes, so any process may
// repeat it: it asks for the same calls under the same keys. A key contains a digest of
// the payload, so another payload makes another call.
//
// The table in topic.go has the topics and what each of them allows.
//
// # Failures
//
// A hook fails if it cannot be reached, exceeds its time, or returns something that its
// topic does not allow or that is too large. Each failure is an event. It counts as
// CONTINUE; or, for a hook that fails closed, as the refusal of its topic.
package hook

import (
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Limits.
const (
	// maxHooks is the number of hooks that a run may have.
	maxHooks = 64
	// maxTools is the number of tools that a hook may name.
	maxTools = 64
	// MaxCommand bounds a command, in bytes.
	MaxCommand = 16 << 10
	// MaxReason, MaxContext and MaxPayload bound the fields of a verdict, in bytes.
	MaxReason  = 4 << 10
	MaxContext = 8 << 10
	MaxPayload = 64 << 10
	// MaxRequest bounds the payload of a request, in bytes of JSON.
	MaxRequest = 768 << 10
	// MinTimeout and MaxTimeout bound the timeout of a hook.
	MinTimeout = time.Millisecond
	MaxTimeout = 5 * time.Minute
	// DefaultTimeout applies if neither the hook nor the run sets a timeout.
	DefaultTimeout = 5 * time.Second
)

const (
	abort   = harnessv1.HookAction_HOOK_ACTION_ABORT
	block   = harnessv1.HookAction_HOOK_ACTION_BLOCK
	carryOn = harnessv1.HookAction_HOOK_ACTION_CONTINUE
	deny    = harnessv1.HookAction_HOOK_ACTION_DENY
	replace = harnessv1.HookAction_HOOK_ACTION_REPLACE
)

// ActionName returns the name of an action in files and events, such as deny. An unset
// action is continue.
func ActionName(a harnessv1.HookAction) string {
	if a == harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED {
		a = carryOn
	}
	return strings.ToLower(strings.TrimPrefix(a.String(), "HOOK_ACTION_"))
}

// ParseAction returns the action of a name in lower case. ok is false for any other text.
func ParseAction(name string) (a harnessv1.HookAction, ok bool) {
	n, ok := harnessv1.HookAction_value["HOOK_ACTION_"+strings.ToUpper(name)]
	if !ok || n == 0 || name != strings.ToLower(name) {
		return 0, false
	}
	return harnessv1.HookAction(n), true
}
