package input

import (
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Answers returns the call that an input answers, and whether it is an approval. callID
// is empty if the input is not an answer.
func Answers(item *harnessv1.InboxItem) (callID string, approval bool) {
	if a := item.GetApproval(); a != nil {
		return a.GetCallId(), true
	}
	return item.GetToolAnswer().GetCallId(), false
}

// answer accepts the first answer to a call that waits or is announced: an approval, or
// a result. A call of a client's tool may need one of each; a call that waits for a
// review accepts either.
func (s State) answer(callID string, approval bool) (Admission, error) {
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
func (s State) kindOf(callID string) string {
	for _, c := range runstate.AwaitedCalls(s.Step.GetSnapshot()) {
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
func (s State) Awaits(callID string) bool {
	kind := s.kindOf(callID)
	return kind != "" && kind != runstate.KindWait && kind != runstate.KindAgent
}

// Had reports whether a call had an answer.
func (s State) Had(callID string) bool {
	snapshot := s.Step.GetSnapshot()
	return runstate.Decided(snapshot, callID) || runstate.Answered(snapshot, callID)
}

// before reports whether a call already had an answer of this kind.
func (s State) before(callID string, approval bool) bool {
	if approval || s.reviewed(callID) {
		return runstate.Decided(s.Step.GetSnapshot(), callID)
	}
	return runstate.Answered(s.Step.GetSnapshot(), s.answerKey(callID))
}

// answerKey returns the id under which the answer to a call is remembered: a call whose server asks
// may have had answers to earlier questions.
func (s State) answerKey(callID string) string {
	last := callID
	for _, c := range s.Step.GetSnapshot().GetPendingToolCalls() {
		if c.GetCallId() == callID {
			last = runstate.AnswerKey(c)
		}
	}
	return last
}

// notPending returns the refusal of an answer to a call that waits for kind instead, or for
// nothing.
func (s State) notPending(callID, kind string) error {
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
func (s State) AnsweredBy(items []*harnessv1.InboxItem, callID string, approval bool) bool {
	if answeredBefore(items, callID, approval) || s.reviewed(callID) && answeredBefore(items, callID, !approval) {
		return true
	}
	tool := s.toolOf(callID)
	return approval && tool != "" && slices.ContainsFunc(items, func(i *harnessv1.InboxItem) bool {
		a := i.GetApproval()
		return a.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN && s.toolOf(a.GetCallId()) == tool && s.covers(a, callID)
	})
}

// toolOf returns the tool of a call that waits for an approval; empty for other calls.
func (s State) toolOf(callID string) string {
	for _, c := range runstate.AwaitedCalls(s.Step.GetSnapshot()) {
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

// awaited returns the call with an id that waits for an answer from outside; nil if none does.
func awaited(s runstate.SharedFields, callID string) *harnessv1.PendingCall {
	for _, c := range runstate.AwaitedCalls(s) {
		if c.GetCallId() == callID {
			return c
		}
	}
	return nil
}
