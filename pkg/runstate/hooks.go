package runstate

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// RecordWants records what hooks want of the rest of the loop: to skip a turn, to
// pause for a review, to make another plan; and what they refused because they failed. Later reasons replace earlier ones;
// unset ones change nothing. It changes s.
func RecordWants(s *harnessv1.Snapshot, wants *harnessv1.HookState) {
	if wants.GetSkipNext() == "" && wants.GetPause() == "" && wants.GetReplan() == "" && wants.GetFailedCall() == "" && wants.GetFailedStop() == "" {
		return
	}
	if s.Hooks == nil {
		s.Hooks = &harnessv1.HookState{}
	}
	set := func(field *string, reason string) {
		if reason != "" {
			*field = content.Cut(reason, content.MaxPreview)
		}
	}
	set(&s.Hooks.SkipNext, wants.GetSkipNext())
	set(&s.Hooks.Pause, wants.GetPause())
	set(&s.Hooks.Replan, wants.GetReplan())
	set(&s.Hooks.FailedCall, wants.GetFailedCall())
	set(&s.Hooks.FailedStop, wants.GetFailedStop())
}

// HookPayload adds to a payload the fields that every hook receives, and returns
// it. It changes payload.
func HookPayload(s *harnessv1.Snapshot, payload map[string]any) map[string]any {
	if payload == nil {
		payload = map[string]any{}
	}
	payload["turn_count"] = int64(s.GetTurnCount())
	payload["max_turns"] = int64(s.GetMaxTurns())
	payload["mode"] = Mode(s)
	return payload
}
