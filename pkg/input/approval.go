package input

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// checkApproval validates an approval by itself.
func checkApproval(a *harnessv1.Approval) error {
	if a.GetCallId() == "" {
		return fault.Invalid("approval.call_id", "must not be empty")
	}
	if len(a.GetCallId()) > MaxID {
		return TooLarge("approval.call_id", len(a.GetCallId()), MaxID, "bytes")
	}
	if !knownDecision(a) {
		return fault.Invalid("approval.decision", "must be ONCE, RUN or DENY")
	}
	switch {
	case len(a.GetRules()) > 0 && a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN:
		return fault.Invalid("approval.rules", "need the decision RUN")
	case len(a.GetRules()) > policy.MaxRules:
		return fault.Invalid("approval.rules", "%d rules exceed the limit of %d", len(a.GetRules()), policy.MaxRules)
	case a.GetArguments() != nil && a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE:
		return fault.Invalid("approval.arguments", "need the decision ONCE")
	case a.GetArguments().GetBlob() != nil:
		return fault.Invalid("approval.arguments", "send the text itself, not a reference to a blob")
	}
	if err := CheckSize("approval.arguments", a.GetArguments().GetInline(), MaxText); err != nil {
		return err
	}
	if a.GetDigest() != "" && CheckDigest(a.GetDigest()) != nil {
		return fault.Invalid("approval.digest", "must be the digest of a preview: 64 lower-case hexadecimal digits")
	}
	return CheckSize("approval.reason", a.GetReason(), MaxReason)
}

// approval accepts the first approval of a call that waits for one or is announced. A
// review is about one call only.
func (s State) approval(a *harnessv1.Approval) (Admission, error) {
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
	return admission, CheckGiven(*s.Asked, a, a.GetArguments().GetInline())
}

// shown checks that an approval that names a digest is for a call that was shown with this
// digest. A call that is announced has none yet; repair checks its digest.
func (s State) shown(a *harnessv1.Approval) error {
	for _, c := range runstate.AwaitedCalls(s.Step.GetSnapshot()) {
		if c.GetCallId() == a.GetCallId() && !shownWith(c, a) {
			return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_CHANGED,
				"call "+strconv.Quote(a.GetCallId())+" of run "+s.Run.String()+" is not the one that was shown: read it again and answer with its digest",
				"call_id", a.GetCallId(), "digest", c.GetPreview().GetDigest())
		}
		if c.GetCallId() == a.GetCallId() {
			if why := unseen(s.Step.GetSnapshot(), c, a); why != "" {
				return fault.Invalid("approval.digest", "%s", why)
			}
		}
	}
	return nil
}

// reviewed reports whether a call waits for a review.
func (s State) reviewed(callID string) bool { return s.kindOf(callID) == runstate.KindReview }

// covers reports whether an approval for the rest of the run is for a call too.
func (s State) covers(a *harnessv1.Approval, callID string) bool {
	if len(a.GetRules()) == 0 {
		return true
	}
	return slices.ContainsFunc(runstate.AwaitedCalls(s.Step.GetSnapshot()), func(c *harnessv1.PendingCall) bool {
		return c.GetCallId() == callID && approval.Covers(s.Step.GetSnapshot(), c, a.GetRules())
	})
}

// CheckGiven validates the rules and the arguments of an approval against the call that it is for. given is the text of the arguments.
func CheckGiven(c approval.Call, a *harnessv1.Approval, given string) error {
	return fault.In("approval", approval.Check(c, a, given))
}

// RecheckApproval returns the call that an approval is for, or why the run refuses it.
func RecheckApproval(s *harnessv1.Snapshot, a *harnessv1.Approval) (call *harnessv1.PendingCall, refusal string) {
	switch call = awaited(s, a.GetCallId()); {
	case !NeedsApproval(call) && runstate.Decided(s, a.GetCallId()):
		refusal = fmt.Sprintf("call %s already has an answer", a.GetCallId())
	case !NeedsApproval(call):
		refusal = fmt.Sprintf("call %s does not wait for an approval", a.GetCallId())
	case !knownDecision(a):
		refusal = "this program does not know such a decision"
	case !shownWith(call, a):
		refusal = fmt.Sprintf("call %s is not the one that was shown", a.GetCallId())
	default:
		refusal = unseen(s, call, a)
	}
	return call, refusal
}

// NeedsApproval reports whether a call waits for an approval or a review.
func NeedsApproval(call *harnessv1.PendingCall) bool {
	return call.GetKind() == runstate.KindApproval || call.GetKind() == runstate.KindReview
}

func knownDecision(a *harnessv1.Approval) bool {
	switch a.GetDecision() {
	case harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
		harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN,
		harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY:
		return true
	default:
		return false
	}
}

// unseen returns why an approval without a digest does not count: lists have a part of the call
// only, so the caller may not have seen the rest. Empty: it counts.
func unseen(s runstate.SharedFields, call *harnessv1.PendingCall, a *harnessv1.Approval) string {
	ref := runstate.Shortened(s, call)
	if ref == nil || a.GetDigest() != "" || a.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
		return ""
	}
	return fmt.Sprintf("call %s is too long for lists, which have it shortened: read blob %s, %d bytes, whole (GetBlob, or GET /v1/runs/{id}/blobs/{digest}), "+
		"then answer with the digest of its preview", strconv.Quote(call.GetCallId()), ref.GetDigest(), ref.GetSize())
}

// shownWith reports whether a call has the digest that an approval names, if it names one.
func shownWith(call *harnessv1.PendingCall, a *harnessv1.Approval) bool {
	return a.GetDigest() == "" || a.GetDigest() == call.GetPreview().GetDigest()
}
