package turn

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

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

// mustStore reports whether a try has a result that is stored even if the turn is
// stopped.
func (p *Progress) mustStore(s *State) bool {
	e := &p.execution
	c, _ := p.candidate(s)
	return e.answer != nil || e.failedTry != nil || e.preparation != nil && c.refused != nil
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
func (p *Progress) givenUp(s runstate.DefinitionFields) []*harnessv1.ModelRetried {
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

// firstReturn returns the shortest of the waits that providers asked for; nil if one that may
// answer later named none.
func firstReturn(failures []*harnessv1.ModelRetried) *durationpb.Duration {
	var first *durationpb.Duration
	for _, f := range failures {
		if f.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE || f.GetKeyMissing() {
			continue
		}
		if f.GetRetryAfter() == nil {
			return nil
		}
		if first == nil || f.GetRetryAfter().AsDuration() < first.AsDuration() {
			first = f.GetRetryAfter()
		}
	}
	return first
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
	end.Message, end.RetryAfter = content.Cut(strings.Join(texts, "\n"), content.MaxPreview), firstReturn(failures)
	return end
}
