package input

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

// checkAnswer validates a result by itself.
func checkAnswer(a *harnessv1.ToolAnswer) error {
	const field = "tool_answer."
	switch {
	case a.GetCallId() == "":
		return fault.Invalid(field+"call_id", "must not be empty")
	case len(a.GetCallId()) > MaxID:
		return TooLarge(field+"call_id", len(a.GetCallId()), MaxID, "bytes")
	case a.GetResult().GetBlob() != nil:
		return fault.Invalid(field+"result", "send the text itself, not a reference to a blob")
	case a.GetAction() < 0 || a.GetAction() > harnessv1.AnswerAction_ANSWER_ACTION_CANCEL:
		return fault.Invalid(field+"action", "must be ACCEPT, DECLINE or CANCEL, or unset")
	}
	if err := CheckSize(field+"result", a.GetResult().GetInline(), MaxText); err != nil {
		return err
	}
	return CheckMedia(field+"media", a.GetMedia())
}

// toolAnswer accepts the first result of a call that waits for one. For a call that
// waits for a review it can only be an error, because the tool has not run.
func (s State) toolAnswer(a *harnessv1.ToolAnswer) (Admission, error) {
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
	if !sameRound(s.Question, a) {
		return 0, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_CHANGED,
			"call "+strconv.Quote(a.GetCallId())+" of run "+s.Run.String()+" asks another question by now: read it again and answer with its round",
			"call_id", a.GetCallId(), "round", strconv.FormatUint(uint64(s.Question.GetRound()), 10))
	}
	_, err = Responses(s.Question, a, a.GetResult().GetInline())
	return admission, err
}

// Responses returns the responses of an answer to the question of a server. Its texts are inline, and text is
// that of the result.
func Responses(q *harnessv1.ServerQuestion, a *harnessv1.ToolAnswer, text string) ([]*harnessv1.ServerResponse, error) {
	responses, err := elicit.Responses(q, a, text)
	return responses, fault.In("tool_answer", err)
}

// RecheckAnswer returns the call that a result is for, or why the run refuses it. The responses to
// the question of a server are checked with its texts, by Responses.
func RecheckAnswer(s *harnessv1.Snapshot, a *harnessv1.ToolAnswer) (call *harnessv1.PendingCall, refusal string) {
	switch call = awaited(s, a.GetCallId()); {
	case call.GetQuestion() != nil && !sameRound(call.GetQuestion(), a):
		refusal = fmt.Sprintf("question %d of call %s does not wait for an answer", a.GetRound(), call.GetCallId())
	case call.GetQuestion() != nil:
	case call == nil && runstate.Answered(s, a.GetCallId()):
		refusal = fmt.Sprintf("call %s already has an answer", a.GetCallId())
	case call == nil:
		refusal = fmt.Sprintf("call %s does not wait for an answer", a.GetCallId())
	case call.GetKind() == runstate.KindApproval:
		refusal = fmt.Sprintf("call %s waits for an approval", a.GetCallId())
	case call.GetKind() == runstate.KindAgent:
		refusal = fmt.Sprintf("call %s waits for its sub-agent: send the message to the sub-agent's run", a.GetCallId())
	case call.GetKind() == runstate.KindWait:
		refusal = fmt.Sprintf("call %s waits for a time or an event: a message ends the wait", a.GetCallId())
	}
	return call, refusal
}

// sameRound reports whether an answer is for the present round of a question, if it names one.
func sameRound(q *harnessv1.ServerQuestion, a *harnessv1.ToolAnswer) bool {
	return a.GetRound() == 0 || a.GetRound() == q.GetRound()
}
