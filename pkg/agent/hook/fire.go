package hook

import (
	"cmp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
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
	// 12/call_3. A repeated firing has the same key.
	Key string
	// Tool is the tool of a call; empty if the point is no call.
	Tool string
	// FailsOpen is true if the failure of a hook refuses nothing at this point, whatever its
	// on_failure says.
	FailsOpen bool
	// Payload is the input of the hooks, of types that encoding/json can write. It is
	// not changed.
	Payload map[string]any
}

// Result is the merged answer of the hooks of a point.
type Result struct {
	// Action is the strongest one, in the order DENY or BLOCK, ABORT, PAUSE, SKIP,
	// REPLAN, REPLACE, CONTINUE.
	Action harnessv1.HookAction
	// HookID and Reason are those of the first hook that returned Action; empty for
	// CONTINUE. A reason may be empty.
	HookID, Reason string
	// Failed is true if Action is that of a hook that failed.
	Failed bool
	// Pause, Skip and Replan are the reasons for a review, for skipping the next turn and
	// for another plan, whatever Action is; empty if no hook wants that.
	Pause, Skip, Replan string
	// Payload is that of the point with its replacements; the same map if there are none.
	Payload map[string]any
	// Replaced reports whether a field was replaced.
	Replaced bool
	// Context has the notes for the model, in order.
	Context []Note
	// Events are hook.result for each hook with a verdict and hook.error for each that
	// failed, in order. An expression that is false leaves none. The caller sets the
	// turn.
	Events []*harnessv1.Event
}

// Note is a text of a hook for the model.
type Note struct {
	HookID, Text string
}

// Fire evaluates the hooks of a point, in order. observed returns the outcome of the
// call under a key, nil if the call was not made. If need is not nil the result is
// empty: make the call and fire again with its outcome under the key of need.
func (s *Set) Fire(p Point, observed func(key string) *harnessv1.HookOutcome) (result Result, need *harnessv1.HookRequest) {
	f := evaluation{point: p, input: input{payload: p.Payload}, result: Result{Action: carryOn, Payload: p.Payload}}
	if s == nil {
		return f.result, nil
	}
	for _, one := range s.byTopic[p.Topic] {
		if !one.includes(p.Tool) {
			continue
		}
		outcome, need := f.call(one, observed)
		if need != nil {
			return Result{}, need
		}
		if outcome != nil && f.take(one, outcome) {
			break
		}
	}
	return f.result, nil
}

// evaluation is the state of one Fire.
type evaluation struct {
	point  Point
	input  input
	result Result
}

// call returns the outcome of the call of a hook. need is not nil if the call was not
// made yet; both are nil if the hook is an expression that is false.
func (f *evaluation) call(one *subscriber, observed func(string) *harnessv1.HookOutcome) (outcome *harnessv1.HookOutcome, need *harnessv1.HookRequest) {
	if one.when != nil {
		holds, err := one.when.Holds(f.input.variables(f.point))
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
	text, digest, err := f.input.encoded()
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

// take records the outcome of a call. over is true if no other hook is called.
func (f *evaluation) take(one *subscriber, outcome *harnessv1.HookOutcome) (over bool) {
	v, replaced, err := checkVerdict(one.topic, f.input.payload, outcome)
	if err != nil {
		return f.failed(one, err.Error())
	}
	f.emit(event.HookResult(one.GetId(), one.topic.Name(), ActionName(v.GetAction()), short(v.GetReason())))
	if v.GetContext() != "" {
		f.result.Context = append(f.result.Context, Note{HookID: one.GetId(), Text: v.GetContext()})
	}
	switch v.GetAction() {
	case replace:
		if replaced == nil {
			return false // replaced with an equal value
		}
		f.input = input{payload: replaced}
		f.result.Payload, f.result.Replaced = replaced, true
	case harnessv1.HookAction_HOOK_ACTION_PAUSE:
		first(&f.result.Pause, v.GetReason(), "The hook "+one.GetId()+" asks for a review.")
	case harnessv1.HookAction_HOOK_ACTION_SKIP:
		first(&f.result.Skip, v.GetReason(), "The hook "+one.GetId()+" has the turn passed over.")
	case harnessv1.HookAction_HOOK_ACTION_REPLAN:
		first(&f.result.Replan, v.GetReason(), "The hook "+one.GetId()+" asks for another plan.")
	default: // decide handles the other actions
	}
	return f.decide(one, v.GetAction(), v.GetReason())
}

// failed records the failure of a hook.
func (f *evaluation) failed(one *subscriber, why string) (over bool) {
	closed := FailsClosed(one.Hook) && !f.point.FailsOpen
	f.emit(event.HookError(one.GetId(), one.topic.Name(), short(why), closed))
	if !closed {
		return false
	}
	before := f.result.Action
	over = f.decide(one, one.topic.Refusal, "The hook "+one.GetId()+" failed, and nothing goes on without it: "+short(why))
	f.result.Failed = f.result.Failed || f.result.Action != before
	return over
}

// decide records an action that is stronger than those before it. over is true if it
// ends the firing.
func (f *evaluation) decide(one *subscriber, a harnessv1.HookAction, reason string) (over bool) {
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
	default:
		return 0
	}
}

func (f *evaluation) emit(e *harnessv1.Event) { f.result.Events = append(f.result.Events, e) }

// first sets a reason that is not set yet, to otherwise if the hook gave none.
func first(to *string, reason, otherwise string) {
	*to = cmp.Or(*to, reason, otherwise)
}

// short cuts a text to the length that events have.
func short(text string) string { return content.Cut(text, content.MaxPreview) }
