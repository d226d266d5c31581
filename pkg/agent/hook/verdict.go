package hook

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// judge is the verdict of an outcome, and the payload with what it replaced, nil for
// nothing. The error says why the subscriber failed.
func judge(r rule, payload map[string]any, outcome *harnessv1.HookOutcome) (*harnessv1.HookVerdict, map[string]any, error) {
	outcome = Limit(outcome)
	if outcome.GetError() != "" {
		return nil, nil, fmt.Errorf("%s", outcome.GetError())
	}
	v := outcome.GetVerdict()
	a := v.GetAction()
	if a == harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED {
		a = carryOn
	}
	switch {
	case harnessv1.HookAction_name[int32(a)] == "":
		return nil, nil, fmt.Errorf("it wants %d, which is no action", int32(a))
	case !r.allows(a):
		return nil, nil, fmt.Errorf("it wants %s, which is not for this topic; that allows %s", ActionName(a), r.list(harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED))
	case v.GetContext() != "" && r.looksOn:
		return nil, nil, fmt.Errorf("it has context, and the model is told nothing behind this topic")
	case a == replace:
		replaced, err := replacement(r.replaces, payload, v.GetPayload())
		return v, replaced, err
	case v.GetPayload() != "":
		return nil, nil, fmt.Errorf("it has a payload, which is for replace only, and wants %s", ActionName(a))
	}
	return v, nil, nil
}

// Limit is an outcome that can be stored: one that holds too much, or nothing, is a
// failure that says so.
func Limit(o *harnessv1.HookOutcome) *harnessv1.HookOutcome {
	v := o.GetVerdict()
	fail := func(format string, args ...any) *harnessv1.HookOutcome {
		return &harnessv1.HookOutcome{Error: fmt.Sprintf(format, args...)}
	}
	switch {
	case o.GetError() != "":
		return fail("%s", short(strings.ToValidUTF8(o.GetError(), "\uFFFD")))
	case v == nil:
		return fail("it gave neither a verdict nor an error")
	case len(v.GetReason()) > MaxReason:
		return fail("its reason has %d bytes; at most %d are allowed", len(v.GetReason()), MaxReason)
	case len(v.GetContext()) > MaxContext:
		return fail("its context has %d bytes; at most %d are allowed", len(v.GetContext()), MaxContext)
	case len(v.GetPayload()) > MaxPayload:
		return fail("its payload has %d bytes; at most %d are allowed", len(v.GetPayload()), MaxPayload)
	}
	return o
}
