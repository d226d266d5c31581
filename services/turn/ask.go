package turn

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
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

// mustStore reports whether a try has a result that is stored even if the turn is
// stopped.
func (p *Progress) mustStore(s *State) bool {
	e := &p.execution
	c, _ := p.candidate(s)
	return e.answer != nil || e.failedTry != nil || e.preparation != nil && c.refused != nil
}

// failedTries returns the number of tries at models that failed in this step. A request
// that is sent again with an adjustment was no try.
func (p *Progress) failedTries() uint32 {
	var n uint32
	for _, f := range p.Failures {
		if f.GetAdjustment() == nil {
			n++
		}
	}
	return n
}

// try returns the number of the next request in this step, from 1.
func (p *Progress) try() uint32 { return uint32(len(p.Failures)) + 1 } //nolint:gosec // a few for each model

// candidate is the model that is to respond.
type candidate struct {
	// ref is PROVIDER:NAME.
	ref string
	// refused is why no request is sent to the model; nil if one is.
	refused *harnessv1.ModelRetried
}

// candidate returns the first model that has not been given up in this step; ok is
// false if every model has.
func (p *Progress) candidate(s *State) (c candidate, ok bool) {
	for i := -1; i < len(s.Snapshot.GetFallbackModels()); i++ {
		ref := s.Snapshot.GetModel()
		if i >= 0 {
			ref = s.Snapshot.GetFallbackModels()[i]
		}
		if _, last := p.Tries(ref); last == nil {
			return candidate{ref: ref, refused: p.refuse(s, ref, i >= 0)}, true
		}
	}
	return candidate{}, false
}

func (p *Progress) hasCandidate(s *State) bool {
	_, ok := p.candidate(s)
	return ok
}

// refuse returns why no request is sent to a model; nil if one is. A fallback model is
// refused if its window is known to be smaller than the prompt.
func (p *Progress) refuse(s *State, ref string, fallback bool) *harnessv1.ModelRetried {
	refused := func(kind harnessv1.TurnErrorKind, why string) *harnessv1.ModelRetried {
		return &harnessv1.ModelRetried{Try: p.try(), Model: ref, Error: content.Cut(why, content.MaxPreview), Last: true, Kind: kind}
	}
	if window, used := s.window(ref), s.Snapshot.GetTokenBudget().GetUsedTokens(); fallback && window > 0 && used > window {
		skipped := refused(exhausted, fmt.Sprintf("skipped: it reads at most %d tokens, and the prompt has about %d", window, used))
		skipped.WindowTokens = window
		return skipped
	}
	if err := p.execution.unusable[ref]; err != nil {
		return refused(harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR, err.Error())
	}
	return nil
}

// Tries returns how often a model failed in this step, and the failure after
// which it was given up; nil while it may be tried again.
func (p *Progress) Tries(ref string) (count uint32, last *harnessv1.ModelRetried) {
	for _, f := range p.Failures {
		if f.GetModel() == ref && f.GetAdjustment() == nil {
			count++
			if f.GetLast() {
				last = f
			}
		}
	}
	return count, last
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

// errorKind returns the kind of error with which a failed try ends the turn if no
// other model responds.
func errorKind(e *model.Error) harnessv1.TurnErrorKind {
	switch {
	case e.Retryable, e.NoKey:
		return harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE
	case e.ContextExceeded:
		return exhausted
	}
	return harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR
}

// noResponse returns the error of a turn in which every model was given up; nil
// if one may still respond, or none has to.
func (p *Progress) noResponse(s *State) *harnessv1.TurnError {
	if p.hasCandidate(s) || p.unadmitted(s) || !p.NeedsModel() {
		return nil
	}
	failures := p.givenUp(s.Snapshot)
	e := Unavailable(failures)
	if tooLong(failures) != nil && runstate.MayCompact(s.Snapshot) {
		e.Kind = exhausted // a compaction helps now, and a model that is away may be back then
	}
	return e
}

const exhausted = harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED

// givenUp returns the failures after which models were given up in this step, in the order
// of the models.
func (p *Progress) givenUp(s *harnessv1.Snapshot) []*harnessv1.ModelRetried {
	var failures []*harnessv1.ModelRetried
	for _, ref := range append([]string{s.GetModel()}, s.GetFallbackModels()...) {
		if _, last := p.Tries(ref); last != nil {
			failures = append(failures, last)
		}
	}
	return failures
}

// tooLong returns the failure of the first model for which the request was too long; nil if
// there is none.
func tooLong(failures []*harnessv1.ModelRetried) *harnessv1.ModelRetried {
	for _, f := range failures {
		if f.GetKind() == exhausted {
			return f
		}
	}
	return nil
}

// Unavailable returns the error of a turn from the last failure of each model:
// unavailable if a later try may succeed, else a refusal.
func Unavailable(failures []*harnessv1.ModelRetried) *harnessv1.TurnError {
	end := &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR}
	var texts []string
	later := false
	for _, f := range failures {
		if f.GetKind() == harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE {
			later = later || !f.GetKeyMissing()
			end.KeyMissing = !later
		}
		texts = append(texts, f.GetModel()+": "+f.GetError())
		switch {
		case f.GetKind() == harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE: // a model that may respond later outweighs all that never will
			end.Kind = f.GetKind()
		case end.Kind == harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR:
			end.Kind = f.GetKind()
		}
	}
	end.Message = content.Cut(strings.Join(texts, "\n"), content.MaxPreview)
	return end
}
