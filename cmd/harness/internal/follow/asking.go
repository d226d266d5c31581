package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Kinds of pending calls that a user can answer.
const (
	kindApproval = "approval"
	kindQuestion = "question"
	kindReview   = "review"
)

// asking is the dialogue about the calls of one park.
type dialogue struct {
	// park is the result that listed the calls.
	park *harnessv1.HarnessResult
	// calls wait for an answer; the prompt shows the first.
	calls []*harnessv1.PendingCall
	// decision is the dialogue about the first call; nil if that is a question. form is that
	// about the question of a server; nil for other calls.
	decision *decision
	form     *form
	// lines are the user's input; nil while no prompt is open.
	lines <-chan string
	// resolved are the calls that are not prompted for again: they have an answer, or the
	// user left them open.
	resolved map[callKey]bool
}

// callKey identifies what waits: its run, empty for the run that is followed, the id of the call,
// which is unique within the run, and the number of the question if the call's server asks.
type callKey struct {
	run, call string
	round     uint32
}

func keyOf(c *harnessv1.PendingCall) callKey {
	return callKey{c.GetRunId(), c.GetCallId(), c.GetQuestion().GetRound()}
}

func (a *dialogue) open() bool { return len(a.calls) > 0 }

// ask opens the prompts of a park. asked is false if there are none.
func (f *follower) ask(ctx context.Context, r *harnessv1.HarnessResult) (asked bool) {
	a := &f.asking
	var open []*harnessv1.PendingCall
	if r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED {
		for _, call := range r.GetPending() {
			if asks(call) && !a.resolved[keyOf(call)] {
				open = append(open, backend.WholeCall(ctx, f.Client, f.Namespace, cmp.Or(call.GetRunId(), f.Run), call))
			}
		}
	}
	switch {
	case len(open) == 0:
		if a.open() { // the call has a result, and no event reported it
			f.Prompt.print("\n")
			a.calls, a.lines, a.decision, a.form = nil, nil, nil, nil
		}
		return false
	case a.open() && keyOf(a.calls[0]) == keyOf(open[0]):
		a.park, a.calls = r, open // its prompt is already open
	default:
		a.park, a.calls, a.decision, a.form = r, open, nil, nil
		f.next()
	}
	return true
}

// asks reports whether a user can answer a call.
func asks(call *harnessv1.PendingCall) bool {
	switch call.GetKind() {
	case kindApproval, kindQuestion, kindReview:
		return true
	}
	return false
}

// next shows the prompt of the first open call, or closes the prompt if none is left.
// While an answer is being stored, no other prompt is shown: events would be mixed with
// it, and the run parks again for the rest.
func (f *follower) next() {
	a := &f.asking
	if len(f.awaiting) > 0 {
		a.calls = nil
	}
	if !a.open() {
		a.lines = nil
		return
	}
	f.Printer.Asking(true)
	if f.Keys != nil {
		f.Keys.Asking(true)
	}
	if call := a.calls[0]; call.GetQuestion() != nil {
		a.form = f.Prompt.fill(call, f.asker(call))
	} else if call.GetKind() == kindQuestion {
		f.Prompt.question(call, f.asker(call))
	} else {
		a.decision = f.Prompt.decide(call, f.asker(call))
	}
	a.lines = f.Prompt.read()
}

// settle removes a call from the open ones permanently.
func (a *dialogue) resolve(key callKey) {
	if a.resolved == nil {
		a.resolved = map[callKey]bool{}
	}
	a.resolved[key] = true
	if a.open() && keyOf(a.calls[0]) == key {
		a.decision, a.form = nil, nil
	}
	a.calls = slices.DeleteFunc(slices.Clone(a.calls), func(c *harnessv1.PendingCall) bool { return keyOf(c) == key })
}

// answer processes a line; !ok: the input has ended.
func (f *follower) answer(ctx context.Context, line string, ok bool) error {
	a := &f.asking
	f.Prompt.received()
	switch {
	case !ok:
		f.Prompt.print("\n")
		f.Prompt = nil
		f.out.Result = a.park
		return nil
	case a.form != nil:
		return f.answerForm(ctx, line)
	case a.calls[0].GetKind() == kindQuestion:
		return f.answerQuestion(ctx, line)
	}
	v, decided := a.decision.take(line)
	if !decided {
		if a.decision.left {
			forget(f.Signals)
		}
		a.lines = f.Prompt.read()
		return nil
	}
	return f.approve(ctx, v)
}

// approve answers the first open call, which waits for an approval.
func (f *follower) approve(ctx context.Context, v Verdict) error {
	call := f.asking.calls[0]
	err := f.reply(ctx, call, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: v.Approval(call)}})
	if Refused(err) {
		f.asking.decision.refused(status.Convert(err).Message())
		f.asking.lines = f.Prompt.read()
		return nil
	}
	if err != nil {
		return err
	}
	f.asking.resolve(keyOf(call))
	f.next()
	return nil
}

// answerQuestion answers the first open call, which is a question, or leaves it open.
// After the last one the run stays parked, unless an answer is being stored.
func (f *follower) answerQuestion(ctx context.Context, line string) error {
	a := &f.asking
	call := a.calls[0]
	_, options := render.Question(call)
	text := Chosen(line, options)
	if text != "" {
		err := f.reply(ctx, call, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{
			ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), Result: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}},
		}})
		if err != nil {
			return err
		}
	}
	a.resolve(keyOf(call))
	if text == "" && !a.open() && len(f.awaiting) == 0 {
		f.out.Result = a.park
	}
	f.next()
	return nil
}

// reply sends the answer to a call to its run. An answer that comes second is only a remark: the run continues
// with the first.
func (f *follower) reply(ctx context.Context, call *harnessv1.PendingCall, request *harnessv1.SendInputRequest) error {
	request.Namespace, request.RunId, request.RequestId = f.Namespace, cmp.Or(call.GetRunId(), f.Run), NewID()
	err := f.callWithRetry(ctx, f.Signals, func(ctx context.Context) error {
		_, err := f.Client.SendInput(ctx, request)
		return err
	})
	switch status.Code(err) {
	case codes.OK:
		f.awaiting[request.GetRequestId()] = true
		f.answers[request.GetRequestId()] = true
	case codes.AlreadyExists:
		f.Printer.Remark("another client has already answered it; continuing")
	case codes.FailedPrecondition:
		if fault.ReasonOf(err) == fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_CALL_CHANGED) {
			return fmt.Errorf("%s; harness resume %s shows it", status.Convert(err).Message(), f.Run)
		}
		f.Printer.Remark("it does not wait for an answer any more; going on")
	default:
		return err
	}
	return nil
}

// settledBy returns the call that an event answers, empty for other events, and the
// remark for a user whose prompt shows it.
func answeredBy(e *harnessv1.Event) (call, told string) {
	const elsewhere = "answered elsewhere"
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_ApprovalAnswered:
		return v.ApprovalAnswered.GetCallId(), elsewhere
	case *harnessv1.Event_ToolAnswer:
		return v.ToolAnswer.GetCallId(), elsewhere
	case *harnessv1.Event_ToolResult:
		return v.ToolResult.GetCallId(), elsewhere
	case *harnessv1.Event_ToolError:
		return v.ToolError.GetCallId(), elsewhere
	case *harnessv1.Event_Repair:
		return v.Repair.GetCallId(), "no longer asked: " + v.Repair.GetReason()
	}
	return "", ""
}

// answeredElsewhere removes the call that another client answered. asked reports whether
// its prompt is open: the prompt is then closed, and the next one opens after the event.
func (f *follower) answeredElsewhere(e *harnessv1.Event) (asked bool) {
	a := &f.asking
	if e.GetSessionResume() != nil && a.open() && e.GetRunId() == "" && a.calls[0].GetRunId() == "" {
		// A question of the contract has no event. Calls that still wait are prompted
		// for when the run parks for them again.
		f.Prompt.print("\n")
		f.Printer.Remark("answered elsewhere")
		a.calls, a.decision, a.form = nil, nil, nil
		return true
	}
	id, told := answeredBy(e)
	if id == "" || !a.open() {
		return false
	}
	at := slices.IndexFunc(a.calls, func(c *harnessv1.PendingCall) bool { return c.GetRunId() == e.GetRunId() && c.GetCallId() == id })
	if at < 0 {
		return false
	}
	asked = at == 0
	a.resolve(keyOf(a.calls[at]))
	if asked {
		f.Prompt.print("\n")
		f.Printer.Remark(told)
	}
	return asked
}
