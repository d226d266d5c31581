package hook

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Effects are the changes that the hooks of one or more points make to the loop: what a
// decision stores and acts on.
type Effects struct {
	// Events are hook.result and hook.error, in order.
	Events []*harnessv1.Event
	// Notes are texts for the model, in order.
	Notes []Note
	// Refused is true if a subscriber denied the call or blocked the stop.
	Refused bool
	// Reason is that of the refusal; it may be empty.
	Reason string
	// Abort, Pause, Skip and Replan are the reasons for which the run fails, parks
	// for a review, passes over the next turn or makes another plan; empty if that
	// is not wanted.
	Abort, Pause, Skip, Replan string
	// FailedCall and FailedStop are the reasons of a call that was denied, and of a stop that
	// was blocked, because a hook failed; empty if none was.
	FailedCall, FailedStop string
	// Replaced is the payload with the replaced fields; nil if nothing was replaced.
	Replaced map[string]any
}

// Effects returns what r does to the rest of the loop.
func (r Result) Effects() Effects {
	e := Effects{Events: r.Events, Notes: r.Context, Pause: r.Pause, Skip: r.Skip, Replan: r.Replan}
	switch r.Action {
	case deny, block:
		e.Refused, e.Reason = true, r.Reason
		switch {
		case !r.Failed:
		case r.Action == deny:
			e.FailedCall = r.Reason
		default:
			e.FailedStop = r.Reason
		}
	case abort:
		e.Abort = r.abortReason()
	default: // the other actions refuse nothing
	}
	if r.Replaced {
		e.Replaced = r.Payload
	}
	return e
}

// abortReason is the error of a run that a hook has aborted.
func (r Result) abortReason() string {
	if r.Reason == "" {
		return "aborted by the hook " + r.HookID
	}
	return r.Reason + " (hook " + r.HookID + ")"
}

// Merge adds the effects of a later point. Its reasons and its payload replace
// those of e where they are set.
func (e *Effects) Merge(later Effects) {
	e.Events, e.Notes = append(e.Events, later.Events...), append(e.Notes, later.Notes...)
	if later.Refused {
		e.Refused, e.Reason = true, later.Reason
	}
	if later.Replaced != nil {
		e.Replaced = later.Replaced
	}
	for _, f := range []struct {
		to   *string
		from string
	}{{&e.Abort, later.Abort}, {&e.Pause, later.Pause}, {&e.Skip, later.Skip}, {&e.Replan, later.Replan}, {&e.FailedCall, later.FailedCall}, {&e.FailedStop, later.FailedStop}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
}

// Wants returns the requests of the subscribers to the rest of the loop as records
// store it; nil if they want nothing.
func (e Effects) Wants() *harnessv1.HookState {
	h := &harnessv1.HookState{SkipNext: e.Skip, Pause: e.Pause, Replan: e.Replan, Abort: e.Abort, FailedCall: e.FailedCall, FailedStop: e.FailedStop}
	if proto.Size(h) == 0 {
		return nil
	}
	return h
}

// Text returns the text that replaces a field of the payload. ok is false if
// the field is no text, or nothing was replaced.
func (e Effects) Text(field string) (text string, ok bool) {
	text, ok = e.Replaced[field].(string)
	return text, ok
}
