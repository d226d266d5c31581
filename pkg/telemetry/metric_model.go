package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// Provider returns p with its tries counted and its rate limits shown under ref. A nil m
// returns p.
func (m *Metrics) Provider(ref string, p model.Provider) model.Provider {
	if m == nil {
		return p
	}
	provider, name := named(ref)
	return &countedProvider{Provider: p, m: m, provider: provider, model: name}
}

type countedProvider struct {
	model.Provider
	m               *Metrics
	provider, model string
}

// Complete makes one try.
func (p *countedProvider) Complete(ctx context.Context, req *model.Request, delta func(model.Delta)) (*model.Response, error) {
	began := time.Now()
	response, err := p.Provider.Complete(ctx, req, delta)
	p.m.modelDuration.record(ctx, time.Since(began).Seconds(), chat, p.provider, p.model, failureOf(ctx, err))
	for _, limit := range limitsOf(response, err) {
		p.m.modelLimit.set(ctx, limit.Limit, p.provider, p.model, limit.Kind)
		p.m.modelRemaining.set(ctx, limit.Remaining, p.provider, p.model, limit.Kind)
	}
	return response, err
}

// limitsOf returns the rate limits that the provider reported with an answer or an
// error.
func limitsOf(response *model.Response, err error) []model.RateLimit {
	if err != nil {
		return model.AsError(err).Limits
	}
	return response.Limits
}

// failureOf returns the label of a failed try: its HTTP status, or what prevented one.
func failureOf(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	failure := model.AsError(err)
	switch {
	case ctx.Err() != nil:
		return "cancelled" // an interrupt, the end of a budget, or a worker that stops
	case failure.ContextExceeded:
		return "context_exceeded"
	case failure.Status >= http.StatusBadRequest && failure.Status <= 599:
		return strconv.Itoa(failure.Status)
	case failure.Retryable:
		return "unreachable"
	}
	return "refused"
}
