package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// pendingOf returns the calls that wait for an answer, of one run or, without a run, of
// the whole namespace, the oldest run first.
func pendingOf(ctx context.Context, s *backend.Session, namespace, run string) ([]*harnessv1.PendingInRun, error) {
	request := &harnessv1.ListPendingRequest{Namespace: namespace, RunId: run, PageSize: 1000}
	var pending []*harnessv1.PendingInRun
	for {
		page, err := s.Client.ListPending(ctx, request)
		if err != nil {
			return nil, err
		}
		pending = append(pending, page.GetPending()...)
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return pending, nil
		}
	}
}

// answering returns the command that answers a call, with a placeholder for the answer.
func answering(run string, p *harnessv1.PendingCall, words string) string {
	verb, rest := "answer", " ANSWER"
	switch p.GetKind() {
	case runstate.KindApproval, runstate.KindReview:
		verb, rest = "approve", ""
	case runstate.KindClientTool:
		rest = " RESULT"
	}
	return "harness " + verb + " " + run + " " + quote(p.GetCallId()) + rest + words
}

// runOf returns the run that an answer to a call names, given all calls that wait in a run and
// below it: the run itself, which takes the answer to where the call waits, unless another call
// there has the same id.
func runOf(run string, call *harnessv1.PendingCall, pending []*harnessv1.PendingCall) string {
	for _, p := range pending {
		if p.GetCallId() == call.GetCallId() && p.GetRunId() != call.GetRunId() && p.GetKind() != runstate.KindAgent {
			return cmp.Or(call.GetRunId(), run)
		}
	}
	return run
}

// alternatives returns the other answers to a call.
func alternatives(p *harnessv1.PendingCall) string {
	switch p.GetKind() {
	case runstate.KindApproval:
		if p.GetOnlyOnce() {
			return "with --deny --reason WHY"
		}
		var rules strings.Builder
		for _, r := range p.GetPreview().GetRules() {
			rules.WriteString("--rule " + quote(cmp.Or(r.GetPrefix(), r.GetPath(), r.GetHost())) + " ")
		}
		if rules.Len() > 0 {
			return "with " + rules.String() + "for later calls too, or --deny --reason WHY"
		}
		return "with --always for all calls of the tool, or --deny --reason WHY"
	case runstate.KindReview:
		return "with --deny --reason WHY, or harness resume, which continues it"
	case runstate.KindQuestion:
		if p.GetQuestion() != nil {
			return "--decline, or --cancel"
		}
	case runstate.KindClientTool:
		return "--file FILE, or --error WHY"
	}
	return ""
}

// hints prints what can be done with a parked or ended run.
func (f *runFollower) hints(ctx context.Context, a *app, text narrator, r *harnessv1.HarnessResult) {
	words := f.target.words(a)
	switch r.GetStatus() {
	case harnessv1.RunStatus_RUN_STATUS_PARKED:
		f.waits(a, text, r)
		lead := "to continue"
		if len(r.GetPending()) > 0 {
			if !f.session.Local {
				return
			}
			lead = "and then"
		}
		a.printNote("%s: harness resume %s%s%s", lead, f.run, extension(ctx, f.session, f.target.Namespace, f.run, r), words)
	case harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		a.printNote("to continue anyway: harness resume %s%s", f.run, words)
	case harnessv1.RunStatus_RUN_STATUS_FAILED:
		switch r.GetReason().GetKind() {
		case runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON):
			a.printNote("to try the step again: harness resume %s%s", f.run, words)
			return
		case runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR), runstate.ErrorKind(harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED):
			a.printNote("to continue with another model: harness resume %s%s --model PROVIDER:NAME", f.run, words)
			return
		}
		fallthrough
	case harnessv1.RunStatus_RUN_STATUS_STALLED:
		a.printNote("to continue: harness run --continue %s%s 'what to do now'", f.run, words)
	default: // a run that is done needs no hint
	}
}

// waits prints what a parked run waits for: blocks of lines for people, otherwise one
// line for each call.
func (f *runFollower) waits(a *app, text narrator, r *harnessv1.HarnessResult) {
	style, words, now := a.style(a.err), f.target.words(a), time.Now()
	for _, p := range r.GetPending() {
		if p.GetKind() == runstate.KindAgent {
			continue // its sub-agent has the answer
		}
		how := answering(runOf(f.run, p, r.GetPending()), p, words)
		if text == nil && p.GetRunId() != "" {
			a.printNote("call %s (%s) of run %s waits (%s): %s", p.GetCallId(), render.Short(p.GetTool(), 64), p.GetRunId(), render.Short(p.GetKind(), 64), how)
			continue
		}
		if text == nil {
			a.printNote("call %s (%s) waits (%s): %s", p.GetCallId(), render.Short(p.GetTool(), 64), render.Short(p.GetKind(), 64), how)
			continue
		}
		text.Lines("")
		text.Lines(style.PendingLines(render.PendingCall{Call: p, Run: p.GetRunId(), Command: how, Or: alternatives(p)}, now)...)
	}
	if wakes := style.WakeLine(r, now); wakes != "" {
		if f.session.Local {
			wakes += ", once a process works on it"
		}
		a.printNote("the run %s", wakes)
	}
}

// budgetExceeded is the prefix of park kinds for a budget; the budget follows.
const budgetExceeded = "budget_exceeded:"

// extension returns the flags of resume that extend the exhausted budgets, each to twice
// what is used.
func extension(ctx context.Context, s *backend.Session, namespace, run string, r *harnessv1.HarnessResult) string {
	which, parked := strings.CutPrefix(r.GetReason().GetKind(), budgetExceeded)
	if !parked {
		return ""
	}
	if answer, err := s.Client.GetState(ctx, &harnessv1.GetStateRequest{Namespace: namespace, RunId: run}); err == nil {
		if flags := extensions(answer.GetSnapshot()); flags != "" {
			return flags
		}
	}
	return map[string]string{
		"turns": " --max-turns N", "tool_calls": " --max-tool-calls N", "wall_clock": " --timeout D",
		"tokens": " --max-tokens N", "cost": " --max-cost USD", "runs": " --max-runs N",
	}[which]
}

// extensions returns the flags that extend every exhausted budget.
func extensions(s *harnessv1.Snapshot) string {
	s = proto.CloneOf(s)
	var flags strings.Builder
	for range 6 { // the number of budgets
		up := runstate.ExceededBudget(s, time.Time{})
		if up == nil {
			break
		}
		more := 2 * max(up.GetLimit(), up.GetUsed(), 1)
		b := &harnessv1.Budgets{}
		switch up.GetBudget() {
		case "turns":
			n := uint32(min(math.Ceil(more), math.MaxUint32))
			b.Turns = &n
			fmt.Fprintf(&flags, " --max-turns %d", n)
		case "tool_calls":
			n := uint32(min(math.Ceil(more), math.MaxUint32))
			b.ToolCalls = &n
			fmt.Fprintf(&flags, " --max-tool-calls %d", n)
		case "wall_clock":
			d := time.Duration(math.Ceil(more)) * time.Second
			b.WallClock = durationpb.New(d)
			fmt.Fprintf(&flags, " --timeout %s", brief(d))
		case "tokens":
			n := uint64(math.Ceil(more))
			b.Tokens = &n
			fmt.Fprintf(&flags, " --max-tokens %d", n)
		case "cost":
			usd := max(math.Ceil(200*max(up.GetLimit(), up.GetUsed())), 1) / 100
			b.CostUsd = &usd
			fmt.Fprintf(&flags, " --max-cost %.2f", usd)
		case "runs":
			n := uint32(min(math.Ceil(more), math.MaxUint32))
			b.Runs = &n
			fmt.Fprintf(&flags, " --max-runs %d", n)
		default:
			return flags.String()
		}
		runstate.ExtendBudgets(s, b)
	}
	return flags.String()
}

// brief formats a duration without trailing zero units.
func brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
