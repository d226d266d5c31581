package gateway

import (
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

// Answers returns the call that an input answers, and whether it is an approval. callID
// is empty if the input is not an answer.
func Answers(item *harnessv1.InboxItem) (callID string, approval bool) {
	if a := item.GetApproval(); a != nil {
		return a.GetCallId(), true
	}
	return item.GetToolAnswer().GetCallId(), false
}

// approval accepts the first approval of a call that waits for one or is announced. A
// review is about one call only.
func (s RunState) approval(a *harnessv1.Approval) (Admission, error) {
	if s.reviewed(a.GetCallId()) && a.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN {
		return 0, fault.Invalid("approval.decision", "call %q waits for a review, which is of this call alone: it must be ONCE or DENY", a.GetCallId())
	}
	admission, err := s.answer(a.GetCallId(), true)
	if err == nil {
		err = s.shown(a)
	}
	if err != nil || !approval.Needed(a) {
		return admission, err
	}
	if s.Asked == nil {
		return 0, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_NOT_PENDING,
			"call "+strconv.Quote(a.GetCallId())+" of run "+s.Run.String()+" does not wait yet, so its rules and arguments cannot be checked: answer when the run is parked",
			"call_id", a.GetCallId())
	}
	return admission, fault.In("approval", approval.Check(*s.Asked, a, a.GetArguments().GetInline()))
}

// shown checks that an approval that names a digest is for a call that was shown with this
// digest. A call that is announced has none yet; repair checks its digest.
func (s RunState) shown(a *harnessv1.Approval) error {
	if a.GetDigest() == "" {
		return nil
	}
	for _, c := range Awaited(s.Step.GetSnapshot()) {
		if present := c.GetPreview().GetDigest(); c.GetCallId() == a.GetCallId() && present != a.GetDigest() {
			return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_CHANGED,
				"call "+strconv.Quote(a.GetCallId())+" of run "+s.Run.String()+" is not the one that was shown: read it again and answer with its digest",
				"call_id", a.GetCallId(), "digest", present)
		}
	}
	return nil
}

// toolAnswer accepts the first result of a call that waits for one. For a call that
// waits for a review it can only be an error, because the tool has not run.
func (s RunState) toolAnswer(a *harnessv1.ToolAnswer) (Admission, error) {
	if s.reviewed(a.GetCallId()) && !a.GetIsError() {
		return 0, fault.Invalid("tool_answer.is_error", "call %q waits for a review: approve or resume it, or set this to report a failure", a.GetCallId())
	}
	admission, err := s.answer(a.GetCallId(), false)
	switch {
	case err != nil:
		return 0, err
	case s.Question == nil && a.GetAction() != harnessv1.AnswerAction_ANSWER_ACTION_UNSPECIFIED:
		return 0, fault.Invalid("tool_answer.action", "call %q is no question of a server: leave it out, and set is_error to report a failure", a.GetCallId())
	case s.Question == nil:
		return admission, nil
	}
	if waits := s.Question.GetRound(); a.GetRound() != 0 && a.GetRound() != waits {
		return 0, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_CHANGED,
			"call "+strconv.Quote(a.GetCallId())+" of run "+s.Run.String()+" asks another question by now: read it again and answer with its round",
			"call_id", a.GetCallId(), "round", strconv.FormatUint(uint64(waits), 10))
	}
	_, err = elicit.Responses(s.Question, a, a.GetResult().GetInline())
	return admission, fault.In("tool_answer", err)
}

// answer accepts the first answer to a call that waits or is announced: an approval, or
// a result. A call of a client's tool may need one of each; a call that waits for a
// review accepts either.
func (s RunState) answer(callID string, approval bool) (Admission, error) {
	kind := s.kindOf(callID)
	switch {
	case s.before(callID, approval), s.AnsweredBy(s.Waiting, callID, approval):
		return 0, Answered(callID)
	case kind == runstate.KindReview:
		return Store, s.room()
	case kind == "" || kind == runstate.KindWait || kind == runstate.KindAgent || (kind == runstate.KindApproval) != approval:
		return 0, s.notPending(callID, kind)
	}
	return Store, s.room()
}

// kindOf returns what a call waits for or will wait for; empty if it does not wait.
func (s RunState) kindOf(callID string) string {
	for _, c := range Awaited(s.Step.GetSnapshot()) {
		if c.GetCallId() == callID {
			return c.GetKind()
		}
	}
	for _, c := range s.Announced {
		if c.GetCallId() != callID {
			continue
		}
		if kind := runstate.PendingKind(c.GetDisposition()); kind != "" || !c.GetReview() {
			return kind
		}
		return runstate.KindReview
	}
	return ""
}

// Awaits reports whether a call waits for an answer of a client, or will.
func (s RunState) Awaits(callID string) bool {
	kind := s.kindOf(callID)
	return kind != "" && kind != runstate.KindWait && kind != runstate.KindAgent
}

// Had reports whether a call had an answer.
func (s RunState) Had(callID string) bool {
	snapshot := s.Step.GetSnapshot()
	return runstate.Decided(snapshot, callID) || runstate.Answered(snapshot, callID)
}

// reviewed reports whether a call waits for a review.
func (s RunState) reviewed(callID string) bool { return s.kindOf(callID) == runstate.KindReview }

// before reports whether a call already had an answer of this kind.
func (s RunState) before(callID string, approval bool) bool {
	if approval || s.reviewed(callID) {
		return runstate.Decided(s.Step.GetSnapshot(), callID)
	}
	return runstate.Answered(s.Step.GetSnapshot(), s.answerKey(callID))
}

// answerKey returns the id under which the answer to a call is remembered: a call whose server asks
// may have had answers to earlier questions.
func (s RunState) answerKey(callID string) string {
	last := callID
	for _, c := range s.Step.GetSnapshot().GetPendingToolCalls() {
		if c.GetCallId() == callID {
			last = runstate.AnswerKey(c)
		}
	}
	return last
}

// notPending returns the refusal of an answer; kind is what the call does wait for.
func (s RunState) notPending(callID, kind string) error {
	text := "does not wait for an answer"
	switch kind {
	case runstate.KindApproval:
		text = "waits for an approval, not for a result"
	case runstate.KindWait:
		text = "waits for a time or an event, not for an answer: send a message to end the wait"
	case runstate.KindAgent:
		text = "waits for its sub-agent, not for an answer: answer or message the run of the sub-agent"
	case runstate.KindClientTool, runstate.KindQuestion:
		text = "waits for a result, not for an approval"
	}
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_NOT_PENDING,
		"call "+strconv.Quote(callID)+" of run "+s.Run.String()+" "+text, "call_id", callID)
}

// Answered returns the error for a call that already has an answer.
func Answered(callID string) *fault.Error {
	return fault.New(codes.AlreadyExists, harnessv1.ErrorReason_ERROR_REASON_CALL_ANSWERED,
		"call "+strconv.Quote(callID)+" already has an answer", "call_id", callID)
}

// AnsweredBy reports whether one of items answers a call. An approval for the rest of
// the run answers every call of its tool that waits for one and that its rules fit.
func (s RunState) AnsweredBy(items []*harnessv1.InboxItem, callID string, approval bool) bool {
	if answeredBefore(items, callID, approval) || s.reviewed(callID) && answeredBefore(items, callID, !approval) {
		return true
	}
	tool := s.toolOf(callID)
	return approval && tool != "" && slices.ContainsFunc(items, func(i *harnessv1.InboxItem) bool {
		a := i.GetApproval()
		return a.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN && s.toolOf(a.GetCallId()) == tool && s.covers(a, callID)
	})
}

// covers reports whether an approval for the rest of the run is for a call too.
func (s RunState) covers(a *harnessv1.Approval, callID string) bool {
	if len(a.GetRules()) == 0 {
		return true
	}
	return slices.ContainsFunc(Awaited(s.Step.GetSnapshot()), func(c *harnessv1.PendingCall) bool {
		return c.GetCallId() == callID && approval.Covers(s.Step.GetSnapshot(), c, a.GetRules())
	})
}

// toolOf returns the tool of a call that waits for an approval; empty for other calls.
func (s RunState) toolOf(callID string) string {
	for _, c := range Awaited(s.Step.GetSnapshot()) {
		if c.GetCallId() == callID && c.GetKind() == runstate.KindApproval {
			return c.GetTool()
		}
	}
	for _, c := range s.Announced {
		if c.GetCallId() == callID && c.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_ASK {
			return c.GetTool()
		}
	}
	return ""
}

// answeredBefore reports whether one of items is an approval of a call, or a result for
// it.
func answeredBefore(items []*harnessv1.InboxItem, callID string, approval bool) bool {
	return slices.ContainsFunc(items, func(i *harnessv1.InboxItem) bool {
		if approval {
			return i.GetApproval() != nil && i.GetApproval().GetCallId() == callID
		}
		return i.GetToolAnswer() != nil && i.GetToolAnswer().GetCallId() == callID
	})
}
