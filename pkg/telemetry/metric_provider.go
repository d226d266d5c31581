package telemetry

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// SendsMetrics says whether the environment asks for metrics by OTLP: an exporter or an
// endpoint is named.
func (t *Telemetry) SendsMetrics() bool { return t != nil && t.metrics.sends }

// NewMeterProvider makes a provider that shows what it measures in registry, unless
// that is nil, and sends it by OTLP where the environment asks for that. The registry
// also gets figures of the Go runtime and of the process. Shut it down; it sends what it
// has.
func (t *Telemetry) NewMeterProvider(ctx context.Context, registry *prometheus.Registry) (*sdkmetric.MeterProvider, error) {
	options := []sdkmetric.Option{sdkmetric.WithResource(t.resource)}
	if registry != nil {
		for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
			if err := registry.Register(c); err != nil {
				return nil, fmt.Errorf("metrics of the process: %w", err)
			}
		}
		exporter, err := prometheusexporter.New(prometheusexporter.WithRegisterer(registry), prometheusexporter.WithoutScopeInfo(),
			prometheusexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
		if err != nil {
			return nil, fmt.Errorf("metrics for Prometheus: %w", err)
		}
		options = append(options, sdkmetric.WithReader(exporter))
	}
	if t.metrics.sends {
		exporter, err := otlp(ctx, t.metrics)
		if err != nil {
			return nil, fmt.Errorf("metrics by OTLP: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	return sdkmetric.NewMeterProvider(options...), nil
}

// otlp makes the exporter. It connects when it first sends, and a receiver that is
// away costs what was measured, never the work.
func otlp(ctx context.Context, to target) (sdkmetric.Exporter, error) {
	if to.protocol == protocolGRPC {
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(to.endpoint))
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(to.endpoint))
}
