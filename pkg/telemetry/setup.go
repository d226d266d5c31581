// Package telemetry exports what a process reports about its work in addition to its
// logs: spans, which package spans creates, and metrics (see Metrics). OTLP receives
// both, Prometheus the metrics. Only the standard environment variables configure OTLP;
// docs/tracing.md and docs/metrics.md list them.
//
// # Failures
//
// Start returns an error of one line for an invalid value. Afterwards nothing fails:
// spans are exported in batches in the background, what an unavailable collector does
// not accept is dropped, and the loss is logged at most once a minute.
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

// Config identifies a process.
type Config struct {
	// Role is the process's role; empty for several.
	Role string
	// Instance identifies the process among all that live.
	Instance string
	// Version is the program's version.
	Version string
	// Env reads the environment. Default os.Getenv. Certificates, headers, compression
	// and timeouts of the exporters are read from the process's environment.
	Env func(string) string
	// Logger; nil discards.
	Logger *slog.Logger
}

// Telemetry is the telemetry of a process. A nil value is switched off.
type Telemetry struct {
	traces   *sdktrace.TracerProvider // nil if nothing is traced
	content  bool
	resource *resource.Resource
	metrics  target
}

// FlushTime bounds the last export.
const FlushTime = 3 * time.Second

// Start configures the telemetry of this process. It does not wait for a collector. The
// error is one line that names the variable and the expected value.
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

// Tracer returns the tracer; nil if nothing is traced.
func (t *Telemetry) Tracer() trace.Tracer {
	if t == nil || t.traces == nil {
		return nil
	}
	return t.traces.Tracer(spans.Scope)
}

// Content reports whether spans may contain the texts of models and tools.
func (t *Telemetry) Content() bool { return t != nil && t.content }

// Shutdown exports the rest, for at most 3 s. What a collector does not accept in that
// time is lost, without an error.
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
