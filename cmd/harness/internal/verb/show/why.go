package show

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

const (
	// whyCalls are the last calls of a run in which repeated ones are looked for.
	whyCalls = 30
	// whyCycle is the length of the longest cycle of calls that is looked for.
	whyCycle = 5
	// whyReason bounds the reason, in runes.
	whyReason = 2000
)

// why returns what a user looks for first in a run that stalled, failed, is parked or was not accepted: the
// reason, and the command that continues it. Above the command are the calls that a stalled run repeated, the
// last one of a failed run if that failed, and what a parked run waits for. It is empty for other runs. A
// conversation that cannot be read leaves out the calls.
func (c *Cmd) why(ctx context.Context, a *console.Console, s *backend.Session, r *harnessv1.HarnessResult) string {
	status := r.GetStatus()
	done := status == harnessv1.RunStatus_RUN_STATUS_DONE
	if r == nil || status == harnessv1.RunStatus_RUN_STATUS_CANCELLED || done && r.GetAccepted() {
		return ""
	}
	var text strings.Builder
	text.WriteString(render.StatusName(status))
	if done {
		text.WriteString(" (not accepted)")
	}
	reason := r.GetReason().GetMessage()
	if reason == "" {
		reason = render.ReasonWords(r.GetReason().GetKind())
	}
	fmt.Fprintf(&text, ": %s\n", render.Short(reason, whyReason))
	if status == harnessv1.RunStatus_RUN_STATUS_PARKED {
		return text.String() + c.waits(ctx, a, s, r) + "\n"
	}
	if done {
		fmt.Fprintf(&text, "to continue: harness run --continue %s%s 'what to do now'\n", c.RunID, c.Words(a))
		return text.String() + "\n"
	}
	if answer, err := s.Client.GetConversation(ctx, &harnessv1.GetConversationRequest{Namespace: c.Namespace, RunId: c.RunID}); err == nil {
		calls := callsOf(answer.GetMessages())
		calls = calls[max(0, len(calls)-whyCalls):]
		if status == harnessv1.RunStatus_RUN_STATUS_STALLED {
			text.WriteString(c.repeated(ctx, a, s, calls))
		} else if last := len(calls) - 1; last >= 0 && calls[last].result.GetIsError() {
			text.WriteString("its last call: " + c.callWithEnd(ctx, a, s, calls[last], ""))
		}
	}
	if purpose, command := target.Next(c.RunID, r, c.Words(a), ""); command != "" {
		fmt.Fprintf(&text, "%s: %s\n", purpose, command)
	}
	return text.String() + "\n"
}

// repeated returns the calls at the end of a run that repeat, each with the end of its newest result;
// without such a cycle the last calls.
func (c *Cmd) repeated(ctx context.Context, a *console.Console, s *backend.Session, calls []placedCall) string {
	if len(calls) == 0 {
		return ""
	}
	length, times := cycle(calls)
	var text strings.Builder
	if times < 2 {
		length = min(len(calls), whyCycle)
		text.WriteString("its last calls:\n")
	} else {
		text.WriteString("it repeated:\n")
	}
	for _, call := range calls[len(calls)-length:] {
		often := ""
		if times >= 2 {
			often = fmt.Sprintf(" (%d times)", times)
		}
		text.WriteString("  " + c.callWithEnd(ctx, a, s, call, often))
	}
	return text.String()
}

// callWithEnd returns a call on one line, and how it ended below.
func (c *Cmd) callWithEnd(ctx context.Context, a *console.Console, s *backend.Session, call placedCall, often string) string {
	line := render.Call(call.call.GetName(), call.call.GetArguments()) + often + "\n"
	if call.result == nil {
		return line
	}
	result, err := backend.Text(ctx, s.Client, c.Namespace, c.RunID, call.result.GetContent())
	if err != nil {
		result = call.result.GetContent().GetBlob().GetPreview()
	}
	for _, part := range a.Style(a.Out).ResultOf(call.call.GetName(), result, call.result.GetIsError()) {
		line += "    " + part + "\n"
	}
	return line
}

// cycle returns the length of the shortest cycle of equal calls at the end, and how often it is there.
func cycle(calls []placedCall) (length, times int) {
	keys := make([]string, len(calls))
	for i, call := range calls {
		keys[i] = call.call.GetName() + " " + spelling(call.call.GetArguments())
	}
	for length = 1; length <= whyCycle && 2*length <= len(keys); length++ {
		times, end := 1, keys[len(keys)-length:]
		for at := len(keys) - 2*length; at >= 0 && slices.Equal(keys[at:at+length], end); at -= length {
			times++
		}
		if times >= 2 {
			return length, times
		}
	}
	return 0, 0
}

// spelling returns what equal arguments have in common, as the detection of loops compares them.
func spelling(arguments *harnessv1.Content) string {
	if blob := arguments.GetBlob(); blob != nil {
		return blob.GetDigest()
	}
	return progress.Canonical(arguments.GetInline())
}
