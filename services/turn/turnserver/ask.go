package turnserver

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// ask gets an answer from the first model that gives one and records it.
func (t *working) ask(ctx, keep context.Context) error {
	began := t.w.cfg.Now()
	c, err := t.conversation(ctx)
	if err != nil {
		return err
	}
	prepared := turn.Prepare(t.s, c.Messages, t.offered.tools.Specs())
	if prepared.Messages, err = t.w.inline(ctx, t.run, t.s.GetModel(), t.s.GetConfig().GetTools().GetShownTokens(), prepared.GetMessages()); err != nil {
		return err
	}
	request := &model.Request{
		Messages:    prepared.GetMessages(),
		Tools:       prepared.GetTools(),
		Streaming:   t.s.GetConfig().GetModel().GetStreaming(),
		IdleTimeout: t.s.GetConfig().GetModel().GetIdleTimeout().AsDuration(),
		Turn:        t.p.Number,
	}
	preparation := t.w.cfg.Now().Sub(began)
	var failures []*harnessv1.ModelRetried
	tries := t.p.FailedTries
	for i, ref := range append([]string{t.s.GetModel()}, t.s.GetFallbackModels()...) {
		start := t.w.cfg.Now()
		if i > 0 {
			failure, err := t.tooSmall(keep, ref, &tries)
			if err != nil {
				return err
			}
			if failure != nil {
				failures = append(failures, failure)
				continue
			}
		}
		response, failure, err := t.askModel(ctx, keep, ref, request, &tries)
		if err != nil {
			return err
		}
		if failure != nil {
			failures = append(failures, failure)
			continue
		}
		return t.record(keep, ref, response, turn.Surroundings{
			Tools: t.offered.tools, Known: c.HasCall, Model: ref, Made: t.made, Deferred: t.listens(),
			Blocked:     func(name string) bool { return t.offered.blocked[name] },
			Preparation: durationpb.New(preparation), Latency: durationpb.New(t.w.cfg.Now().Sub(start)),
		})
	}
	return &turnError{turn.Unanswered(failures)}
}

// kindOf is what a failure makes of the turn when no other model answers.
func kindOf(e *model.Error) harnessv1.TurnErrorKind {
	switch {
	case e.Retryable:
		return harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE
	case e.ContextExceeded:
		return harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED
	}
	return harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR
}

// askModel tries one model until it answers, refuses, or its tries are used up.
// Tries that an earlier worker made in this step count.
func (t *working) askModel(ctx, keep context.Context, ref string, request *model.Request, tries *uint32) (*model.Response, *harnessv1.ModelRetried, error) {
	made, last := t.p.Tries(ref)
	if last != nil {
		return nil, last, nil
	}
	p, err := t.w.provider(ref)
	if err != nil {
		passed, err := t.passOver(keep, ref, tries, harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR, err.Error())
		return nil, passed, err
	}
	request.Model = p.name
	for try := made + 1; ; try++ {
		*tries++
		request.FailedTries = t.s.GetFailedTries() + t.p.FailedTries
		response, err := t.complete(ctx, p, ref, request, *tries)
		if err == nil {
			failpoint.Hit(turn.Name, "answered")
			return response, nil, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, nil, cause
		}
		failure := model.AsError(err)
		wait, again := model.Next(t.s.GetConfig().GetModel(), try, failure, t.w.cfg.Random())
		retried := &harnessv1.ModelRetried{
			Try: *tries, Model: ref, Error: content.Cut(failure.Message, content.MaxPreview), Wait: durationpb.New(wait),
			Last: !again, Kind: kindOf(failure),
		}
		if err := t.noteRetry(keep, retried); err != nil {
			return nil, nil, err
		}
		if !again {
			return nil, retried, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// tooSmall passes over a fallback model whose window is known to be smaller than
// the prompt; nil: it is not.
func (t *working) tooSmall(keep context.Context, ref string, tries *uint32) (*harnessv1.ModelRetried, error) {
	if _, last := t.p.Tries(ref); last != nil {
		return last, nil
	}
	window, used := t.w.cfg.Window(ref), t.s.GetTokenBudget().GetUsedTokens()
	if window == 0 || used <= window {
		return nil, nil
	}
	return t.passOver(keep, ref, tries, harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED,
		fmt.Sprintf("it was not asked: it reads %d tokens at most, and the prompt has about %d", window, used))
}

// passOver records that a model is not asked in this step, and why.
func (t *working) passOver(keep context.Context, ref string, tries *uint32, kind harnessv1.TurnErrorKind, why string) (*harnessv1.ModelRetried, error) {
	*tries++
	passed := &harnessv1.ModelRetried{Try: *tries, Model: ref, Error: content.Cut(why, content.MaxPreview), Last: true, Kind: kind}
	return passed, t.noteRetry(keep, passed)
}

// complete makes one try at a model, as a span.
func (t *working) complete(ctx context.Context, p *opened, ref string, request *model.Request, try uint32) (*model.Response, error) {
	ctx, span := t.chatSpan(ctx, p, ref, request, try)
	defer span.End()
	response, err := p.provider.Complete(ctx, request, t.deltas(try))
	t.answered(ctx, span, ref, response, err)
	return response, err
}

// deltas publishes the text of one try as it is written.
func (t *working) deltas(try uint32) func(string) {
	offset := uint64(0)
	return func(text string) {
		failpoint.Hit(turn.Name, "streaming")
		t.delta(&harnessv1.Delta{TurnNumber: t.p.Number, Attempt: t.p.Attempts, Try: try, Offset: offset, Text: text})
		offset += uint64(len(text))
	}
}

func (t *working) noteRetry(ctx context.Context, r *harnessv1.ModelRetried) error {
	return t.note(ctx,
		&harnessv1.Journal{Entry: &harnessv1.Journal_ModelRetried{ModelRetried: r}},
		nil,
		[]*harnessv1.Event{runstate.Event(t.s, t.p.Number, &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{
			Try: r.GetTry(), Model: r.GetModel(), Error: r.GetError(), Wait: r.GetWait(),
		}}})})
}

// record commits the answer and what was decided of its calls.
func (t *working) record(ctx context.Context, ref string, r *model.Response, in turn.Surroundings) error {
	if r.Usage == nil {
		r.Usage = &harnessv1.Usage{}
	}
	r.Usage.CostMicroUsd = t.w.cfg.Price(ref, r)
	a := turn.Answer(t.s, t.p, r, in)
	if err := t.keepArtifacts(ctx, a.Entry.GetModelResponded().GetWorkItems()); err != nil {
		return err
	}
	return t.note(ctx, a.Entry, a.Appended, a.Events)
}
