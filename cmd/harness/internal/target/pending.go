package target

import (
	"cmp"
	"context"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// PendingOf returns the calls that wait for an answer, of one run or, without a run, of
// the whole namespace, the oldest run first.
func PendingOf(ctx context.Context, s *backend.Session, namespace, run string) ([]*harnessv1.PendingInRun, error) {
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

// Answering returns the command that answers a call, with a placeholder for the answer.
func Answering(run string, p *harnessv1.PendingCall, words string) string {
	verb, rest := "answer", " ANSWER"
	switch p.GetKind() {
	case runstate.KindApproval, runstate.KindReview:
		verb, rest = "approve", ""
	case runstate.KindClientTool:
		rest = " RESULT"
	}
	return "harness " + verb + " " + run + " " + Quote(p.GetCallId()) + rest + words
}

// RunOf returns the run that an answer to a call names, given all calls that wait in a run and
// below it: the run itself, which takes the answer to where the call waits, unless another call
// there has the same id.
func RunOf(run string, call *harnessv1.PendingCall, pending []*harnessv1.PendingCall) string {
	for _, p := range pending {
		if p.GetCallId() == call.GetCallId() && p.GetRunId() != call.GetRunId() && p.GetKind() != runstate.KindAgent {
			return cmp.Or(call.GetRunId(), run)
		}
	}
	return run
}

// Alternatives returns the other answers to a call.
func Alternatives(p *harnessv1.PendingCall) string {
	switch p.GetKind() {
	case runstate.KindApproval:
		if p.GetOnlyOnce() {
			return "with --deny --reason WHY"
		}
		var rules strings.Builder
		for _, r := range p.GetPreview().GetRules() {
			rules.WriteString("--rule " + Quote(render.Rule(r)) + " ")
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
