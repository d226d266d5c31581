package runstate

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Kinds of pending calls: the answer from outside that a call waits for.
const (
	// KindApproval: a person allows or refuses the call.
	KindApproval = "approval"
	// KindClientTool: the client that runs the tool gives the result.
	KindClientTool = "client_tool"
	// KindQuestion: a person answers the question in the call's arguments.
	KindQuestion = "question"
	// KindReview: a person reviews the call, as a hook wants. It is also the stop
	// reason of a run that a hook has paused.
	KindReview = "review"
	// KindAgent: the run that the call started gives the result. It is also the stop reason of
	// a run that waits for nothing else.
	KindAgent = "agent"
	// KindProviderUnavailable: no provider could be reached, or a client has to give its key.
	KindProviderUnavailable = "provider_unavailable"
	// KindPoison: workers died at a step of the run. It is also the stop reason of the run that
	// fails of it.
	KindPoison = "poison"
)

// MaxPending bounds the pending calls of a run; the harness refuses more.
const MaxPending = 128

// PendingKind returns the answer that a call with a disposition waits for; empty if
// it waits for none.
func PendingKind(d harnessv1.CallDisposition) string {
	switch d {
	case harnessv1.CallDisposition_CALL_DISPOSITION_ASK:
		return KindApproval
	case harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT:
		return KindClientTool
	case harnessv1.CallDisposition_CALL_DISPOSITION_QUESTION:
		return KindQuestion
	case harnessv1.CallDisposition_CALL_DISPOSITION_WAIT:
		return KindWait
	case harnessv1.CallDisposition_CALL_DISPOSITION_AGENT:
		return KindAgent
	default:
		return ""
	}
}

// AnswerDeadline returns when a pending call of a kind expires that starts to wait
// at now.
func AnswerDeadline(s DefinitionFields, kind string, now time.Time) *timestamppb.Timestamp {
	if kind == KindAgent {
		return nil // its definition may set one
	}
	tools := s.GetConfig().GetTools()
	timeout := tools.GetAnswerTimeout()
	if kind == KindApproval || kind == KindReview {
		timeout = tools.GetApprovalTimeout()
	}
	wait := defaultAnswerTimeout // of snapshots without the setting
	if timeout != nil {
		wait = timeout.AsDuration()
	}
	return timestamppb.New(now.Add(wait))
}

// FirstDeadline returns the earliest deadline of the awaited calls and of children in the background and of graphs, or check of a wait; nil if
// there is none. A wait, and the work of sub-agents, also ends with the time budget of the run: s has its stop reason, and its clock runs.
func FirstDeadline(s *harnessv1.Snapshot) *timestamppb.Timestamp {
	var first *timestamppb.Timestamp
	for _, c := range AwaitedCalls(s) {
		if d := c.GetDeadline(); d != nil && (first == nil || d.AsTime().Before(first.AsTime())) {
			first = d
		}
		if d := c.GetWait().GetCheckTime(); d != nil && c.GetKind() == KindWait && (first == nil || d.AsTime().Before(first.AsTime())) {
			first = d
		}
	}
	for _, c := range s.GetChildren() {
		if d := c.GetDeadline(); d != nil && (first == nil || d.AsTime().Before(first.AsTime())) {
			first = d
		}
	}
	if at, ok := WallClockDeadline(s); ok && (waits(s) || delegates(s)) && (first == nil || at.Before(first.AsTime())) {
		first = timestamppb.New(at)
	}
	return first
}

// AwaitReason returns the stop reason of a run that is parked for answers; nil if
// it awaits none.
func AwaitReason(s SharedFields, turn uint32) *harnessv1.StopReason {
	pending := AwaitedCalls(s)
	if len(pending) == 0 {
		return nil
	}
	first := pending[0]
	for _, c := range pending { // a review pauses the whole run, and a wait continues by itself
		if c.GetKind() == KindReview && first.GetKind() != KindReview || !passes(c.GetKind()) && passes(first.GetKind()) {
			first = c
		}
	}
	message := fmt.Sprintf("%d call(s) wait to be answered, first %s.", len(pending), first.GetTool())
	if _, asked := QuestionOf(first); (asked || first.GetKind() == KindReview) && first.GetWhy() != "" {
		message = first.GetWhy()
	}
	if q := first.GetQuestion(); q != nil {
		message = fmt.Sprintf("%d call(s) wait to be answered, first a question of the server %s.", len(pending), q.GetServer())
	}
	if first.GetKind() == KindWait {
		message = "It waits " + first.GetWhy() + "."
	}
	return &harnessv1.StopReason{
		Kind:    first.GetKind(),
		Message: message,
		Details: &harnessv1.StopDetails{Turn: turn},
	}
}

// passes reports whether a wait of a kind ends by itself.
func passes(kind string) bool { return kind == KindWait || kind == KindAgent }

// AwaitedCalls returns the pending calls that wait for an answer from outside.
func AwaitedCalls(s SharedFields) []*harnessv1.PendingCall {
	return pendingOf(s, harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL)
}

// ApprovedCalls returns the pending calls that were approved and have not run.
func ApprovedCalls(s SharedFields) []*harnessv1.PendingCall {
	return pendingOf(s, harnessv1.PendingClass_PENDING_CLASS_APPROVED)
}

func pendingOf(s SharedFields, class harnessv1.PendingClass) []*harnessv1.PendingCall {
	var calls []*harnessv1.PendingCall
	for _, c := range s.GetPendingToolCalls() {
		if c.GetClass() == class {
			calls = append(calls, c)
		}
	}
	return calls
}

// RemovePending removes a call from the pending ones. It changes s.
func RemovePending(s *harnessv1.Snapshot, callID string) {
	var rest []*harnessv1.PendingCall
	for _, c := range s.GetPendingToolCalls() {
		if c.GetCallId() != callID {
			rest = append(rest, c)
		}
	}
	s.PendingToolCalls = rest
}
