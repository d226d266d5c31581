package runstate

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Kinds of pending calls: what a call that someone outside has to answer waits for.
const (
	// KindApproval: a person allows or refuses the call.
	KindApproval = "approval"
	// KindClientTool: the client that runs the tool gives the result.
	KindClientTool = "client_tool"
	// KindQuestion: a person answers the question in the call's arguments.
	KindQuestion = "question"
)

// KindOf is what a call with a disposition waits for; empty when it waits for nobody.
func KindOf(d harnessv1.CallDisposition) string {
	switch d {
	case harnessv1.CallDisposition_CALL_DISPOSITION_ASK:
		return KindApproval
	case harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT:
		return KindClientTool
	case harnessv1.CallDisposition_CALL_DISPOSITION_QUESTION:
		return KindQuestion
	}
	return ""
}

// AnswerBy is when waiting that begins at now ends, for a kind of pending call.
func AnswerBy(s *harnessv1.Snapshot, kind string, now time.Time) *timestamppb.Timestamp {
	tools := s.GetConfig().GetTools()
	timeout := tools.GetAnswerTimeout()
	if kind == KindApproval || kind == KindReview {
		timeout = tools.GetApprovalTimeout()
	}
	wait := defaultAnswerTimeout // of a run that was begun when there was none
	if timeout != nil {
		wait = timeout.AsDuration()
	}
	return timestamppb.New(now.Add(wait))
}

// FirstDeadline is the earliest deadline of the calls that someone outside has to
// answer; nil when none has one.
func FirstDeadline(s *harnessv1.Snapshot) *timestamppb.Timestamp {
	var first *timestamppb.Timestamp
	for _, c := range Awaited(s) {
		if d := c.GetDeadline(); d != nil && (first == nil || d.AsTime().Before(first.AsTime())) {
			first = d
		}
	}
	return first
}

// Awaiting is why a run rests that waits for answers.
func Awaiting(s *harnessv1.Snapshot, turn uint32) *harnessv1.StopReason {
	pending := Awaited(s)
	if len(pending) == 0 {
		return nil
	}
	first := pending[0]
	for _, c := range pending { // a review is a pause of the whole run
		if c.GetKind() == KindReview && first.GetKind() != KindReview {
			first = c
		}
	}
	message := fmt.Sprintf("%d call(s) wait to be answered, first %s.", len(pending), first.GetTool())
	if _, asked := QuestionOf(first); (asked || first.GetKind() == KindReview) && first.GetWhy() != "" {
		message = first.GetWhy()
	}
	return &harnessv1.StopReason{
		Kind:    first.GetKind(),
		Message: message,
		Details: &harnessv1.StopDetails{Turn: turn},
	}
}

// Awaited returns the pending calls that someone outside has to answer.
func Awaited(s *harnessv1.Snapshot) []*harnessv1.PendingCall {
	return pendingOf(s, harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL)
}

// Approved returns the pending calls that were approved and have not run.
func Approved(s *harnessv1.Snapshot) []*harnessv1.PendingCall {
	return pendingOf(s, harnessv1.PendingClass_PENDING_CLASS_APPROVED)
}

func pendingOf(s *harnessv1.Snapshot, class harnessv1.PendingClass) []*harnessv1.PendingCall {
	var calls []*harnessv1.PendingCall
	for _, c := range s.GetPendingToolCalls() {
		if c.GetClass() == class {
			calls = append(calls, c)
		}
	}
	return calls
}

// Settle takes a call out of the pending ones. It changes s.
func Settle(s *harnessv1.Snapshot, callID string) {
	var rest []*harnessv1.PendingCall
	for _, c := range s.GetPendingToolCalls() {
		if c.GetCallId() != callID {
			rest = append(rest, c)
		}
	}
	s.PendingToolCalls = rest
}
