package repair

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// maxVerdicts bounds the events of hooks in one decision.
const maxVerdicts = 128

// drain applies a batch of the inbox, in order.
func (d *decision) drain(batch *harnessv1.InboxBatch) error {
	for _, item := range batch.GetItems() {
		if d.verdicts > maxVerdicts {
			return nil // the next decision takes in the rest: the cursor has not passed it
		}
		if runstate.Drained(d.s, item.GetId()) {
			continue // sent twice; the first one had its effect
		}
		d.item, d.caller, d.noApprovals = item.GetId(), item.GetCaller(), item.GetNoApprovals()
		kind, refusal, err := d.apply(item)
		if err != nil {
			return err
		}
		if refusal == "" || item.GetTimerFired() == nil {
			// The id of a refused timer is not kept: a later park may set a timer of the
			// same id, if the park of the first was never committed.
			runstate.RecordDrained(d.s, item.GetId())
		}
		runstate.PassInbox(d.s, item.GetSequence())
		if refusal != "" {
			d.Emit(event.InputRejected(item.GetId(), kind, refusal, d.caller))
			continue
		}
		d.applied++
		d.Emit(event.InputAccepted(item.GetId(), kind, d.caller))
		if d.cancel != nil {
			return nil // later items are for the ended run: a message reopens it
		}
	}
	runstate.PassInbox(d.s, batch.GetCursor())
	return nil
}

// apply applies one item. refusal is why it has no effect, else empty.
func (d *decision) apply(item *harnessv1.InboxItem) (kind, refusal string, err error) {
	if item.GetOrder() > 0 {
		return d.applyOrder(item)
	}
	switch input := item.GetInput().(type) {
	case *harnessv1.InboxItem_ChildReport:
		refusal, err := d.applyReport(input.ChildReport)
		return "child_report", refusal, err
	case *harnessv1.InboxItem_UserMessage:
		return causeMessage, "", d.applyMessage(input.UserMessage)
	case *harnessv1.InboxItem_Approval:
		refusal, err := d.applyApproval(input.Approval)
		return "approval", refusal, err
	case *harnessv1.InboxItem_Interrupt:
		return "interrupt", d.applyInterrupt(input.Interrupt), nil
	case *harnessv1.InboxItem_Resume:
		refusal, err := d.applyResume(input.Resume, item.GetMaxInputTokens())
		return "resume", refusal, err
	case *harnessv1.InboxItem_Cancel:
		return "cancel", d.applyCancel(input.Cancel), nil
	case *harnessv1.InboxItem_TimerFired:
		refusal, err := d.applyTimer(input.TimerFired)
		return "timer_fired", refusal, err
	case *harnessv1.InboxItem_ToolAnswer:
		refusal, err := d.applyAnswer(input.ToolAnswer)
		return "tool_answer", refusal, err
	case *harnessv1.InboxItem_ToolsDeclared:
		d.s.ClientTools = proto.CloneOf(input.ToolsDeclared.GetTools())
		return "tools_declared", "", nil
	case *harnessv1.InboxItem_ModeChange:
		return "mode_change", d.applyMode(input.ModeChange), nil
	case *harnessv1.InboxItem_ModelChange:
		d.applyModel(input.ModelChange.GetModel(), item.GetMaxInputTokens())
		return "model_change", "", nil
	case *harnessv1.InboxItem_Feedback:
		refusal, err := d.applyFeedback(input.Feedback)
		return "feedback", refusal, err
	case *harnessv1.InboxItem_Replan:
		return "replan", d.applyReplan(input.Replan), nil
	}
	return "unknown", "this program does not know such an input", nil
}

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
func outOfTurns(s *harnessv1.Snapshot) bool {
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

// applyMode changes the mode of work, from the next call on.
func (d *decision) applyMode(m *harnessv1.ModeChange) (refusal string) {
	from, to := runstate.Mode(d.s), m.GetMode()
	switch {
	case runstate.Ended(d.s):
		return "the run has ended"
	case !mode.Exists(to, d.made.Modes):
		return fmt.Sprintf("there is no mode %q; there are %s", content.Cut(to, 64), strings.Join(mode.Names(d.made.Modes), ", "))
	case d.s.GetParent().GetPlans() && to != mode.Plan:
		return "the run that started it is in plan mode"
	}
	if d.s.Mode = to; from != to {
		d.changeMode(from, to)
	}
	return ""
}

// changeMode reports a change of the mode of work to observers and to the model.
func (d *decision) changeMode(from, to string) {
	d.Emit(event.ModeChanged(from, to))
	d.GuideOn("mode", "mode", "", mode.ChangeText(from, to, d.made.Modes)).Kept = d.Marks()
}

// applyModel changes the model from the next model call on, and the window if it is not 0. What was learnt about the
// former one does not apply to it.
func (d *decision) applyModel(to string, window uint32) {
	s := d.s
	if window > 0 {
		s.Config.Context.MaxInputTokens = &window
	}
	from := s.GetModel()
	if from == to {
		return
	}
	s.Model = to
	if s.GetTokenBudget() != nil {
		b := runstate.OwnBudget(s)
		b.Factor, b.FactorModel, b.WindowTokens, b.Exceeded, b.Refusals = 0, "", 0, false, 0
	}
	setFactor(s)
	if s.GetConfig().GetModel().GetIdleTimeout().AsDuration() == runstate.DefaultIdleTimeout && catalogue.Default().Reasons(to) {
		s.Config.Model.IdleTimeout = durationpb.New(runstate.ReasoningIdleTimeout)
	}
	d.Emit(event.ModelChanged(from, to))
}

// applyReplan requests another plan before the next turn.
func (d *decision) applyReplan(p *harnessv1.ReplanRequest) (refusal string) {
	if runstate.Ended(d.s) {
		return "the run has ended"
	}
	runstate.RecordWants(d.s, &harnessv1.HookState{Replan: cmp.Or(p.GetReason(), "it was asked for")})
	return ""
}

func (d *decision) applyInterrupt(i *harnessv1.Interrupt) (refusal string) {
	switch {
	case runstate.Ended(d.s):
		return "the run has ended"
	case d.s.GetPausedPhase() != unpaused && d.resumed == "" && len(runstate.AwaitedCalls(d.s)) == 0 && !runstate.WaitsForAgents(d.s.GetStopReason()):
		return "the run rests already"
	}
	d.interrupt, d.interrupter = i, d.caller
	return ""
}

func (d *decision) applyCancel(c *harnessv1.Cancel) (refusal string) {
	if runstate.Ended(d.s) {
		return "the run has ended"
	}
	d.cancel, d.canceller = c, d.caller
	return ""
}

func (d *decision) applyResume(resume *harnessv1.Resume, window uint32) (refusal string, err error) {
	switch {
	case runstate.Ended(d.s) && runstate.Resumable(d.s, resume.GetModel() != ""):
		guidance := "The run was cancelled and is now resumed. Look at what is done and go on."
		switch {
		case resume.GetModel() != "":
			guidance = "The run was stopped and is now resumed. Look at what is done and go on."
			d.applyModel(resume.GetModel(), window)
		case d.s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_CANCELLED:
			guidance = "The run was stopped by an error of the harness and is now resumed. Look at what is done and go on."
		}
		d.resumed = "resume"
		runstate.ExtendBudgets(d.s, resume.GetBudgets())
		d.Append(runstate.GuidanceMessage(guidance))
		return "", d.reopen(d.s.GetGoalPreview())
	case runstate.Ended(d.s):
		return "the run has ended; a message reopens it", nil
	}
	reviewed := func(call *harnessv1.PendingCall) bool { return call.GetKind() == runstate.KindReview }
	if d.noApprovals && slices.ContainsFunc(runstate.AwaitedCalls(d.s), reviewed) {
		return "a call waits for a review, and the caller may not approve calls", nil
	}
	if short := runstate.InsufficientBudget(d.s, resume.GetBudgets(), d.now); short != nil {
		return fmt.Sprintf("a budget of %.6g %s is not above the %.6g that are used", short.GetLimit(), short.GetBudget(), short.GetUsed()), nil
	}
	runstate.ExtendBudgets(d.s, resume.GetBudgets())
	if resume.GetModel() != "" {
		d.applyModel(resume.GetModel(), window)
	}
	d.interrupt, d.resumed = nil, "resume"
	for _, call := range runstate.AwaitedCalls(d.s) {
		if reviewed(call) { // the resume is the review
			runstate.RecordDecision(d.s, call, harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, d.item)
			if err := d.allow(call); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

func (d *decision) applyTimer(t *harnessv1.TimerFired) (refusal string, err error) {
	if d.s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || t.GetParkVersion() != d.s.GetParkVersion() {
		return "the park that set the timer is over", nil
	}
	if at := d.s.GetWakeAt(); at != nil && at.AsTime().After(d.now) {
		d.now = at.AsTime() // the timer proves it, even if the clock here is slow
	}
	if d.s.GetPausedPhase() != unpaused && runstate.WaitsForAgents(d.s.GetStopReason()) && len(runstate.AwaitedCalls(d.s)) == 0 {
		return "", nil // of what runs below
	}
	if len(runstate.AwaitedCalls(d.s)) > 0 {
		d.answerExpired()
		if err := d.checkWaits(); err != nil {
			return "", err
		}
		d.resumeIfAnswered("timer")
		return "", nil
	}
	d.resumed = "timer"
	return "", nil
}
