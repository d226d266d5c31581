package turnserver

import (
	"context"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// prepareRequest makes the request that the models of this turn are sent.
func (t *execution) prepareRequest(ctx context.Context, a turn.PrepareRequest) turn.Event {
	request, err := t.server.render(ctx, t.run, t.state, a.Conversation, !t.unstored)
	if err != nil {
		return turn.Failed{Err: err}
	}
	t.conversation = a.Conversation
	t.request = &model.Request{
		Messages:  request.GetMessages(),
		Tools:     request.GetTools(),
		Streaming: t.state.Snapshot.GetConfig().GetModel().GetStreaming(),
		Turn:      t.progress.Number,
		Agent:     t.state.Snapshot.GetParent().GetAgent(),
		CacheKey:  content.Digest([]byte(t.run.Namespace + "/" + t.run.ID))[:cacheKey],
		Blob: func(ctx context.Context, digest string) ([]byte, error) {
			return t.server.blobs.read(ctx, t.run, digest)
		},
	}
	reasoning := t.state.Snapshot.GetReasoning()
	t.request.Effort, t.request.ShowReasoning = reasoning.GetEffort(), reasoning == nil || reasoning.Show == nil || reasoning.GetShow()
	if t.written, err = t.server.written(ctx, t.run, t.state.Snapshot, a.Conversation); err != nil {
		return turn.Failed{Err: err}
	}
	return turn.RequestPrepared{Written: t.written}
}

// cacheKey is the length of the key of the provider's cache.
const cacheKey = 32

// askModel makes one try at a model.
func (t *execution) askModel(ctx context.Context, a turn.AskModel) turn.Event {
	p, err := t.server.provider(a.Ref)
	if err != nil {
		return turn.ModelUnusable{Err: err}
	}
	t.request.Model, t.request.FailedTries = p.name, a.FailedTries
	t.request.Adjustments, t.request.IdleTimeout = a.Adjustments, t.idleTimeout(a.Ref)
	response, err := t.complete(ctx, p, a)
	if err != nil {
		return turn.ModelFailed{Err: model.AsError(err), Random: t.server.cfg.Random()}
	}
	failpoint.Hit(turn.Name, "answered")
	if response.Usage == nil {
		response.Usage = &harnessv1.Usage{}
	}
	response.Usage.CostMicroUsd = t.server.cfg.Price(a.Ref, response)
	return turn.ModelAnswered{Response: response, Request: t.facts}
}

// complete sends the request once, as a span, and describes it meanwhile.
func (t *execution) complete(ctx context.Context, p *provider, a turn.AskModel) (*model.Response, error) {
	defer t.describeRequest(ctx)()
	ctx, span := t.startModelSpan(ctx, a)
	defer span.End()
	read := executor.Waits(ctx) // until something of the answer is read
	defer read()
	publish := t.publishDeltas(a.Try)
	response, err := p.provider.Complete(model.WithRead(model.WithRun(ctx, t.run.String()), read), t.request, func(d model.Delta) {
		read()
		publish(d)
	})
	t.describeResponse(ctx, span, a.Ref, response, err)
	return response, err
}

// idleTimeout returns how long a model may be silent. The time of the run is that of its first
// model. A fallback model that reasons gets more, unless the run's was set.
func (t *execution) idleTimeout(ref string) time.Duration {
	idle := t.state.Snapshot.GetConfig().GetModel().GetIdleTimeout().AsDuration()
	if ref != t.state.Snapshot.GetModel() && idle == runstate.DefaultIdleTimeout && t.server.cfg.Reasons(ref) {
		return runstate.ReasoningIdleTimeout
	}
	return idle
}

// wait waits until the next try, or until the turn is stopped.
func (t *execution) wait(ctx context.Context, a turn.Wait) turn.Event {
	defer executor.Waits(ctx)()
	sleep(ctx, a.For)
	return turn.Waited{}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// provider is an open connection to a model.
type provider struct {
	provider model.Provider
	name     string // of the model, at the provider
}

// provider returns the provider of a model, opened once.
func (w *Server) provider(ref string) (*provider, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.providers[ref]; p != nil {
		return p, nil
	}
	p, name, err := w.cfg.Open(ref)
	if err != nil {
		return nil, err
	}
	w.providers[ref] = &provider{provider: p, name: name}
	return w.providers[ref], nil
}
