// Package telemetry is what a process tells of its work beside its logs: spans, which
// package spans makes, and figures (see Metrics), to whoever collects them by OTLP, and
// figures to Prometheus. Where OTLP goes is set up by the standard environment variables
// alone; docs/tracing.md and docs/metrics.md name them.
//
// # Failing
//
// A value that cannot be meant is an error of Start, in one line. From then on nothing
// fails: spans are handed over in batches behind the work, what a collector that is away
// does not take is dropped, and that is logged once a minute at most.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// Config says who a process is.
type Config struct {
	// Role is the role that it has; empty for several.
	Role string
	// Instance names it among all that live.
	Instance string
	// Version is that of the program.
	Version string
	// Env is the environment. Default os.Getenv. Certificates, headers, compression and
	// time-outs of the exporters are read from the process's own environment.
	Env func(string) string
	// Logger; nil discards.
	Logger *slog.Logger
}

// Telemetry is the telemetry of a process. A nil one is switched off.
type Telemetry struct {
	traces   *sdktrace.TracerProvider // nil when nothing is traced
	content  bool
	resource *resource.Resource
	metrics  target
}

// FlushTime bounds the last hand-over.
const FlushTime = 3 * time.Second

// Start sets the telemetry of this process up. It does not wait for a collector. The
// error is one line that names the variable and says what it has to be.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	if cfg.Env == nil {
		cfg.Env = os.Getenv
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := readSettings(cfg.Env)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{content: s.content, resource: resourceOf(cfg, s), metrics: s.metrics}
	if !s.traces.sends {
		return t, nil
	}
	exporter, err := newExporter(ctx, s.traces)
	if err != nil {
		return nil, err
	}
	t.traces = sdktrace.NewTracerProvider(
		sdktrace.WithResource(t.resource),
		sdktrace.WithSampler(entrance{s.sampler}),
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithBatcher(&patient{next: exporter, logger: cfg.Logger, now: time.Now, endpoint: s.traces.endpoint}),
	)
	return t, nil
}

// Tracer makes spans; nil when nothing is traced.
func (t *Telemetry) Tracer() trace.Tracer {
	if t == nil || t.traces == nil {
		return nil
	}
	return t.traces.Tracer(spans.Scope)
}

// Content says whether spans may hold what models and tools are told and say.
func (t *Telemetry) Content() bool { return t != nil && t.content }

// Shutdown hands over what is left, for 3 s at most. What a collector does not take in
// that time is lost, which is no error.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if t == nil || t.traces == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, FlushTime)
	defer cancel()
	err := t.traces.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
