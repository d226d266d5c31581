package follow

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Prompt asks a person at a terminal.
type Prompt struct {
	in    io.Reader
	out   io.Writer
	clean func(string) string

	once  sync.Once
	lines chan string
}

// NewPrompt asks on out and reads lines from in. clean makes text that others
// wrote safe for the terminal.
func NewPrompt(in io.Reader, out io.Writer, clean func(string) string) *Prompt {
	return &Prompt{in: in, out: out, clean: clean, lines: make(chan string)}
}

// read starts to read lines, at the first question. A read from a terminal
// cannot be broken off, so the goroutine lives as long as the process.
func (p *Prompt) read() <-chan string {
	p.once.Do(func() {
		go func() {
			defer close(p.lines)
			scan := bufio.NewScanner(p.in)
			for scan.Scan() {
				p.lines <- scan.Text()
			}
		}()
	})
	return p.lines
}

// asking is the question that is open.
type asking struct {
	// park is the rest in which the question came up.
	park *harnessv1.HarnessResult
	// calls wait for an answer; the first is being asked.
	calls []*harnessv1.PendingCall
	// why says that the next line is the reason of a no.
	why bool
	// lines are what the person writes; nil while nobody is asked.
	lines <-chan string
	// answered are the calls that have an answer.
	answered map[string]bool
	// always are the tools that are allowed from now on.
	always map[string]bool
}

func (a *asking) open() bool { return len(a.calls) > 0 }

// ask opens the questions of a rest. asked is false when there are none.
func (f *follower) ask(ctx context.Context, r *harnessv1.HarnessResult) (asked bool, err error) {
	if r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED {
		return false, nil
	}
	var open []*harnessv1.PendingCall
	for _, call := range r.GetPending() {
		if call.GetKind() == "approval" && !f.asking.answered[call.GetCallId()] {
			open = append(open, call)
		}
	}
	if len(open) == 0 {
		return false, nil
	}
	if f.asking.open() && f.asking.calls[0].GetCallId() == open[0].GetCallId() {
		f.asking.park, f.asking.calls = r, open
		return true, nil // it is being asked already
	}
	f.asking.park, f.asking.calls, f.asking.why = r, open, false
	return true, f.next(ctx)
}

// next asks the first open question, or closes the prompt when none is left.
func (f *follower) next(ctx context.Context) error {
	a := &f.asking
	for a.open() && a.always[a.calls[0].GetTool()] {
		a.calls = a.calls[1:] // the answer to the first allowed this one too
	}
	if !a.open() {
		a.lines = nil
		return nil
	}
	p, call := f.Prompt, a.calls[0]
	fmt.Fprintf(p.out, "\n%s asks to be run:\n", p.clean(call.GetTool()))
	arguments := call.GetArguments().GetInline()
	if blob := call.GetArguments().GetBlob(); blob != nil {
		arguments = fmt.Sprintf("%s... (%d bytes in all)", blob.GetPreview(), blob.GetSize())
	}
	for line := range strings.Lines(p.clean(arguments)) {
		fmt.Fprintf(p.out, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
	if call.GetWhy() != "" {
		fmt.Fprintf(p.out, "%s\n", p.clean(call.GetWhy()))
	}
	f.question()
	a.lines = p.read()
	return nil
}

func (f *follower) question() {
	fmt.Fprint(f.Prompt.out, "Allow it? [y] once  [a] always for this run  [n] no: ")
}

// answer takes in a line; !ok means that the person has gone.
func (f *follower) answer(ctx context.Context, line string, ok bool) error {
	a := &f.asking
	if !ok {
		fmt.Fprintln(f.Prompt.out)
		f.Prompt = nil
		f.out.Result = a.park
		return nil
	}
	decision, reason := harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, strings.TrimSpace(line)
	if !a.why {
		word, rest, _ := strings.Cut(reason, " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			decision, reason = harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, ""
		case "a", "always":
			decision, reason = harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN, ""
			if a.always == nil {
				a.always = map[string]bool{}
			}
			a.always[a.calls[0].GetTool()] = true
		case "n", "no":
			if reason = strings.TrimSpace(rest); reason == "" {
				a.why = true
				fmt.Fprint(f.Prompt.out, "Why not? The model is told (Enter for no reason): ")
				return nil
			}
		default:
			f.question()
			return nil
		}
	}
	a.why = false
	if err := f.decide(ctx, decision, reason); err != nil {
		return err
	}
	return f.next(ctx)
}

// decide sends the answer to the first open question.
func (f *follower) decide(ctx context.Context, decision harnessv1.ApprovalDecision, reason string) error {
	a := &f.asking
	call := a.calls[0]
	a.calls = a.calls[1:]
	if a.answered == nil {
		a.answered = map[string]bool{}
	}
	a.answered[call.GetCallId()] = true
	id := NewID()
	err := f.insist(ctx, f.Signals, func(ctx context.Context) error {
		_, err := f.Client.SendInput(ctx, &harnessv1.SendInputRequest{
			Namespace: f.Namespace, RunId: f.Run, RequestId: id,
			Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
				CallId: call.GetCallId(), Decision: decision, Reason: reason,
			}},
		})
		return err
	})
	switch status.Code(err) {
	case codes.OK:
		f.awaiting[id] = true
	case codes.AlreadyExists, codes.FailedPrecondition:
		f.Printer.Note("that call has an answer from elsewhere")
	default:
		return err
	}
	return nil
}

// answeredElsewhere drops the question that somebody else has answered.
func (f *follower) answeredElsewhere(ctx context.Context, e *harnessv1.Event) error {
	id := e.GetApprovalAnswered().GetCallId()
	if id == "" || !f.asking.open() {
		return nil
	}
	first := f.asking.calls[0].GetCallId() == id
	var left []*harnessv1.PendingCall
	for _, call := range f.asking.calls {
		if call.GetCallId() != id {
			left = append(left, call)
		}
	}
	f.asking.calls = left
	if !first {
		return nil
	}
	f.asking.why = false
	fmt.Fprintln(f.Prompt.out)
	f.Printer.Note("answered elsewhere")
	return f.next(ctx)
}
