package hook

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// checkVerdict returns the verdict of an outcome, and the payload with its replacement;
// nil if there is none. The error has the cause of the failure: it becomes the reason of a
// refusal, which the model reads.
func checkVerdict(topic *Topic, payload map[string]any, outcome *harnessv1.HookOutcome) (*harnessv1.HookVerdict, map[string]any, error) {
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
	case !topic.allows(a):
		return nil, nil, fmt.Errorf("it wants %s, which is not for this topic; that allows %s", ActionName(a), topic.actionNames(harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED))
	case v.GetContext() != "" && topic.ObservesOnly:
		return nil, nil, fmt.Errorf("it has context, and the model is told nothing behind this topic")
	case a == replace:
		replaced, err := replacement(topic.Replaceable, payload, v.GetPayload())
		return v, replaced, err
	case v.GetPayload() != "":
		return nil, nil, fmt.Errorf("it has a payload, which is for replace only, and wants %s", ActionName(a))
	}
	return v, nil, nil
}

// Limit returns an outcome that can be stored. An outcome that is empty or too large
// becomes a failure. Its texts, which a service or a command has written, reach people and
// the model without control characters.
func Limit(o *harnessv1.HookOutcome) *harnessv1.HookOutcome {
	v := o.GetVerdict()
	fail := func(format string, args ...any) *harnessv1.HookOutcome {
		return &harnessv1.HookOutcome{Error: fmt.Sprintf(format, args...)}
	}
	switch {
	case o.GetError() != "":
		return fail("%s", content.Line(o.GetError(), content.MaxPreview))
	case v == nil:
		return fail("it gave neither a verdict nor an error")
	case len(v.GetReason()) > MaxReason:
		return fail("its reason has %d bytes; at most %d are allowed", len(v.GetReason()), MaxReason)
	case len(v.GetContext()) > MaxContext:
		return fail("its context has %d bytes; at most %d are allowed", len(v.GetContext()), MaxContext)
	case len(v.GetPayload()) > MaxPayload:
		return fail("its payload has %d bytes; at most %d are allowed", len(v.GetPayload()), MaxPayload)
	}
	if reason, text := content.Clean(v.GetReason()), content.Clean(v.GetContext()); reason != v.GetReason() || text != v.GetContext() {
		v = proto.CloneOf(v)
		v.Reason, v.Context = content.Cut(reason, MaxReason), content.Cut(text, MaxContext)
		o = &harnessv1.HookOutcome{Verdict: v}
	}
	return o
}
