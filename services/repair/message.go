package repair

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func (d *decision) applyMessage(m *harnessv1.UserMessage) error {
	d.Append(&harnessv1.Message{
		Role:    harnessv1.Role_ROLE_USER,
		Kind:    harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT,
		Kept:    true,
		Content: proto.CloneOf(m.GetContent()),
		Parts:   media.Parts(m.GetMedia()),
	})
	outOfTurns := d.resumed == "" && outOfTurns(d.s)
	d.interrupt, d.resumed = nil, causeMessage
	runstate.WithdrawDone(d.s) // declared before the agent read this message
	if outOfTurns {
		if err := d.complete(); err != nil {
			return err
		}
	}
	if runstate.Ended(d.s) {
		return d.reopen(goalOf(m))
	}
	return nil
}

// outOfTurns reports whether a run is parked because its segment has used up its turns or
// tool calls, which the next segment has again.
func outOfTurns(s runstate.SharedFields) bool {
	if s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED {
		return false
	}
	switch s.GetStopReason().GetKind() {
	case "budget_exceeded:turns", "budget_exceeded:tool_calls":
		return true
	}
	return false
}

// complete ends the segment of a parked run with the reason for which it is parked.
func (d *decision) complete() error {
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_FAIL); err != nil {
		return err
	}
	d.s.Status, d.s.Accepted, d.s.Hooks, d.s.WakeAt = harnessv1.RunStatus_RUN_STATUS_DONE, false, nil, nil
	reason := d.s.GetStopReason()
	d.Emit(event.SessionComplete(d.s.GetStatus(), false, reason))
	payload := map[string]any{"status": "DONE", "accepted": false, "kind": reason.GetKind(), "message": reason.GetMessage()}
	for _, topic := range []harnessv1.HookTopic{harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, harnessv1.HookTopic_HOOK_TOPIC_SESSION_END} {
		if _, err := d.call(topic, "", "", payload); err != nil {
			return err
		}
	}
	return nil
}

// goalOf returns the goal of a segment that a message opens: its text, or the names of its
// files if it has no text.
func goalOf(m *harnessv1.UserMessage) string {
	if text := content.Text(m.GetContent()); strings.TrimSpace(text) != "" {
		return text
	}
	names := make([]string, 0, len(m.GetMedia()))
	for _, file := range m.GetMedia() {
		names = append(names, cmp.Or(file.GetName(), file.GetType()))
	}
	return "Look at the attached files: " + strings.Join(names, ", ")
}

// reopen opens another segment of an ended run.
func (d *decision) reopen(goal string) error {
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_REOPEN); err != nil {
		return err
	}
	return d.openSegment(goal)
}
