package hook

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Point is one place in a run at which hooks are called.
type Point struct {
	// Namespace and RunID name the run.
	Namespace, RunID string
	// Topic is the kind of place.
	Topic harnessv1.HookTopic
	// Turn is the turn, from 1; 0 before the first.
	Turn uint32
	// Key makes the firing unique among those of its topic in the run, such as
	// 12/call_3. It is the same when the firing is gone through again.
	Key string
	// Tool is the tool of a call; empty where there is none.
	Tool string
	// Payload is what the subscribers are given: what encoding/json can write. It is
	// not changed.
	Payload map[string]any
}

// Result is what the subscribers of a point want.
type Result struct {
	// Action is the strongest: DENY or BLOCK, ABORT, PAUSE, SKIP, REPLAN, REPLACE,
	// CONTINUE.
	Action harnessv1.HookAction
	// HookID and Reason are those of the hook that decided on Action, the first that
	// wanted it; empty for CONTINUE. A reason may be empty.
	HookID, Reason string
	// Pause, Skip and Replan are the reasons for which a review, a turn that is passed
	// over and another plan are wanted, whatever Action is; empty when they are not.
	Pause, Skip, Replan string
	// Payload is that of the point with what was replaced; the same map when nothing
	// was.
	Payload map[string]any
	// Replaced says that something was.
	Replaced bool
	// Context is what the model is to be told, in order.
	Context []Note
	// Events are hook.result for each subscriber that spoke and hook.error for each
	// that failed, in order. An expression that does not hold leaves none. What the
	// loop knows, such as the number of the turn, is left to the caller.
	Events []*harnessv1.Event
}

// Note is something that a hook tells the model.
type Note struct {
	HookID, Text string
}

// Fire calls the subscribers of a point, in order, over what was observed. need is not
// nil when one of them has to be called first: then call it, have its outcome
// observed under need's idempotency key, and fire again. The result is of use only
// without a need.
func (s *Set) Fire(p Point, observed func(key string) *harnessv1.HookOutcome) (result Result, need *harnessv1.HookRequest) {
	f := firing{point: p, given: given{payload: p.Payload}, result: Result{Action: carryOn, Payload: p.Payload}}
	if s == nil {
		return f.result, nil
	}
	for _, one := range s.byTopic[p.Topic] {
		if !one.fits(p.Tool) {
			continue
		}
		outcome, need := f.ask(one, observed)
		if need != nil {
			return Result{}, need
		}
		if outcome != nil && f.take(one, outcome) {
			break
		}
	}
	return f.result, nil
}

// firing is a firing under way.
type firing struct {
	point  Point
	given  given
	result Result
}

// ask is how the call of a subscriber went; need is not nil when it was not called
// yet, and both are nil when it has nothing to say.
func (f *firing) ask(one *subscriber, observed func(string) *harnessv1.HookOutcome) (outcome *harnessv1.HookOutcome, need *harnessv1.HookRequest) {
	if one.when != nil {
		holds, err := one.when.Holds(f.given.variables(f.point))
		switch {
		case err != nil:
			return &harnessv1.HookOutcome{Error: "the expression cannot be evaluated: " + err.Error()}, nil
		case !holds:
			return nil, nil
		}
		return &harnessv1.HookOutcome{Verdict: &harnessv1.HookVerdict{
			Action: one.GetAction(), Reason: one.GetReason(), Context: one.GetContext(),
		}}, nil
	}
	text, digest, err := f.given.encoded()
	if err != nil {
		return &harnessv1.HookOutcome{Error: err.Error()}, nil
	}
	key := f.point.key(one.GetId(), digest)
	if outcome := observed(key); outcome != nil {
		return outcome, nil
	}
	return nil, &harnessv1.HookRequest{
		Namespace: f.point.Namespace, RunId: f.point.RunID, HookId: one.GetId(), Topic: f.point.Topic,
		IdempotencyKey: key, TurnNumber: f.point.Turn, Payload: text,
	}
}

// take takes in how the call of a subscriber went; over says that no other is called.
func (f *firing) take(one *subscriber, outcome *harnessv1.HookOutcome) (over bool) {
	v, replaced, err := judge(one.rule, f.given.payload, outcome)
	if err != nil {
		return f.failed(one, err.Error())
	}
	f.emit(&harnessv1.Event{Event: &harnessv1.Event_HookResult{HookResult: &harnessv1.HookResult{
		HookId: one.GetId(), Topic: TopicName(f.point.Topic), Action: ActionName(v.GetAction()), Reason: short(v.GetReason()),
	}}})
	if v.GetContext() != "" {
		f.result.Context = append(f.result.Context, Note{HookID: one.GetId(), Text: v.GetContext()})
	}
	switch v.GetAction() {
	case replace:
		if replaced == nil {
			return false // with the same
		}
		f.given = given{payload: replaced}
		f.result.Payload, f.result.Replaced = replaced, true
	case harnessv1.HookAction_HOOK_ACTION_PAUSE:
		first(&f.result.Pause, v.GetReason(), "The hook "+one.GetId()+" asks for a review.")
	case harnessv1.HookAction_HOOK_ACTION_SKIP:
		first(&f.result.Skip, v.GetReason(), "The hook "+one.GetId()+" has the turn passed over.")
	case harnessv1.HookAction_HOOK_ACTION_REPLAN:
		first(&f.result.Replan, v.GetReason(), "The hook "+one.GetId()+" asks for another plan.")
	}
	return f.decide(one, v.GetAction(), v.GetReason())
}

// failed takes in that a subscriber failed.
func (f *firing) failed(one *subscriber, why string) (over bool) {
	closed := FailsClosed(one.Hook)
	f.emit(&harnessv1.Event{Event: &harnessv1.Event_HookError{HookError: &harnessv1.HookError{
		HookId: one.GetId(), Topic: TopicName(f.point.Topic), Error: short(why), FailedClosed: closed,
	}}})
	if !closed {
		return false
	}
	return f.decide(one, one.rule.closed, "The hook "+one.GetId()+" failed, and nothing goes on without it: "+short(why))
}

// decide has an action count when it is stronger than those before it.
func (f *firing) decide(one *subscriber, a harnessv1.HookAction, reason string) (over bool) {
	if strength(a) > strength(f.result.Action) {
		f.result.Action, f.result.HookID, f.result.Reason = a, one.GetId(), reason
	}
	return strength(a) >= strength(abort)
}

func strength(a harnessv1.HookAction) int {
	switch a {
	case deny, block:
		return 6
	case abort:
		return 5
	case harnessv1.HookAction_HOOK_ACTION_PAUSE:
		return 4
	case harnessv1.HookAction_HOOK_ACTION_SKIP:
		return 3
	case harnessv1.HookAction_HOOK_ACTION_REPLAN:
		return 2
	case replace:
		return 1
	}
	return 0
}

func (f *firing) emit(e *harnessv1.Event) { f.result.Events = append(f.result.Events, e) }

// first keeps the reason that came first.
func first(have *string, reason, otherwise string) {
	switch {
	case *have != "":
	case reason != "":
		*have = reason
	default:
		*have = otherwise
	}
}

// short is a text as events hold it.
func short(text string) string { return content.Cut(text, content.MaxPreview) }
