package telemetry

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// resourceOf returns the resource of this process. Attributes of the environment take
// precedence.
func resourceOf(cfg Config, s settings) *resource.Resource {
	service := "harness"
	if cfg.Role != "" {
		service += "-" + cfg.Role
	}
	attributes := []attribute.KeyValue{
		attribute.String("service.name", service),
		attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.Instance),
	}
	attributes = append(attributes, s.resource...)
	if s.service != "" {
		attributes = append(attributes, attribute.String("service.name", s.service))
	}
	return resource.NewSchemaless(attributes...) // of two attributes with the same key the later one counts
}

func newExporter(ctx context.Context, s target) (*otlptrace.Exporter, error) {
	var client otlptrace.Client
	if s.protocol == protocolGRPC {
		client = otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(s.endpoint))
	} else {
		client = otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(s.endpoint))
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("traces to %s: %w", s.endpoint, err)
	}
	return exporter, nil
}

// ids gives a span the id that its context requires, and any other one a random id.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if ref, ok := spans.Given(ctx); ok {
		return trace.TraceID(ref.Trace), trace.SpanID(ref.Span)
	}
	var id trace.TraceID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()|1)
	return id, randomSpan()
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if ref, ok := spans.Given(ctx); ok {
		return trace.SpanID(ref.Span)
	}
	return randomSpan()
}

func randomSpan() (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// entrance is a sampler that restricts where traces start: with a call of the gateway,
// and at the chapters of a run that is traced. Otherwise every internal call that
// belongs to no run would be a trace.
type entrance struct{ next sdktrace.Sampler }

var gatewayCalls = harnessv1.GatewayService_ServiceDesc.ServiceName + "/"

func (e entrance) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	_, chapter := spans.Given(p.ParentContext)
	switch {
	case chapter:
		return sdktrace.AlwaysSample().ShouldSample(p) // decided when the run was started
	case !parent.IsValid() && p.Name != spans.StartRun && !strings.HasPrefix(p.Name, gatewayCalls):
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return e.next.ShouldSample(p)
}

func (e entrance) Description() string { return "entrance{" + e.next.Description() + "}" }

// complaintPause is the time between two log lines about a collector that does not
// accept spans.
const complaintPause = time.Minute

// patient is an exporter that logs its failures at intervals and does not return them.
type patient struct {
	next     sdktrace.SpanExporter
	logger   *slog.Logger
	now      func() time.Time
	endpoint string

	mu     sync.Mutex
	lost   int // spans since the last line
	spoken time.Time
}

func (p *patient) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	err := p.next.ExportSpans(ctx, batch)
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost += len(batch)
	if now := p.now(); p.spoken.IsZero() || now.Sub(p.spoken) >= complaintPause {
		p.logger.WarnContext(ctx, "spans are lost: the collector does not take them", "endpoint", p.endpoint, "spans", p.lost, "error", err)
		p.spoken, p.lost = now, 0
	}
	return nil
}

func (p *patient) Shutdown(ctx context.Context) error { return p.next.Shutdown(ctx) }
