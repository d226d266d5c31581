package turn

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// ask gets a response from the first model that gives one: the run's model, or
// else its fallback models in order.
func (p *Progress) ask(s *State) Action {
	e := &p.execution
	c, _ := p.candidate(s)
	switch {
	case e.answer != nil && !e.modeRead && e.stop == nil && len(e.answer.response.ToolCalls) > 0:
		return CheckInbox{Newest: true}
	case e.answer != nil:
		return Append{Draft: p.respond(s), After: "responded"}
	case e.failedTry != nil:
		return p.retry(s, e.failedTry)
	case e.conversation == nil:
		return LoadConversation{}
	case e.preparation == nil:
		return PrepareRequest{Conversation: e.conversation}
	case c.refused != nil:
		return p.retry(s, c.refused)
	case e.wait != nil:
		return Wait{For: *e.wait}
	}
	return AskModel{
		Ref: c.ref, Try: p.try(), FailedTries: s.Snapshot.GetFailedTries() + p.failedTries(), Adjustments: p.adjustments(s, c.ref),
	}
}

// failTry notes a failed try at a model, which is tried again after a wait or
// given up.
func (p *Progress) failTry(s *State, ref string, failed ModelFailed) {
	failure := failed.Err
	if failure == nil {
		failure = model.AsError(nil)
	}
	if adjustment := p.adjust(s, ref, failure); adjustment != nil {
		p.execution.failedTry = &harnessv1.ModelRetried{
			Try: p.try(), Model: ref, Error: content.Cut(failure.Message, content.MaxPreview), Wait: durationpb.New(0),
			Adjustment: adjustment, Kind: errorKind(failure),
		}
		return
	}
	count, _ := p.Tries(ref)
	wait, again := model.Next(s.Snapshot.GetConfig().GetModel(), count+1, failure, failed.Random)
	p.execution.failedTry = &harnessv1.ModelRetried{
		Try: p.try(), Model: ref, Error: content.Cut(failure.Message, content.MaxPreview), Wait: durationpb.New(wait),
		Last: !again, Kind: errorKind(failure), KeyMissing: failure.NoKey, PromptTokens: failure.PromptTokens, WindowTokens: failure.WindowTokens,
	}
	if !again && failure.Retryable && failure.RetryAfter > 0 {
		p.execution.failedTry.RetryAfter = durationpb.New(failure.RetryAfter)
	}
}

// retry stores a failed try.
func (p *Progress) retry(s *State, r *harnessv1.ModelRetried) Action {
	d := p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_ModelRetried{ModelRetried: r}})
	d.Emit(event.ModelRetry(r))
	return Append{Draft: d}
}

// retried continues after a failed try is stored.
func (p *Progress) retried(r *harnessv1.ModelRetried, now time.Time) {
	e := &p.execution
	e.failedTry, e.wait = nil, nil
	switch {
	case r.GetLast():
		e.askSince = now
		return
	case r.GetAdjustment() != nil:
		return
	}
	wait := r.GetWait().AsDuration()
	e.wait = &wait
}

// refuseAnswer notes an answer that is a refusal. The model is given up in this step,
// because the same request is refused again, and nothing of the answer is appended.
func (p *Progress) refuseAnswer(ref string, r *model.Response) {
	why := "the model refused to answer"
	if category := strings.TrimSpace(content.OneLine(r.Refusal)); category != "" {
		why += " (" + category + ")"
	}
	p.execution.failedTry = &harnessv1.ModelRetried{
		Try: p.try(), Model: ref, Error: content.Cut(why, content.MaxPreview), Wait: durationpb.New(0), Last: true,
		Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR, Usage: r.Usage,
	}
}

// refusal is the finish reason of an answer that is a refusal.
const refusal = "content_filter"
