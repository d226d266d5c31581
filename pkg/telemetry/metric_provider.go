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

// SendsMetrics reports whether the environment names an exporter or an endpoint for
// metrics by OTLP.
func (t *Telemetry) SendsMetrics() bool { return t != nil && t.metrics.sends }

// NewMeterProvider returns a provider that exposes measurements in registry, unless
// that is nil, and sends them by OTLP if the environment requests that. The registry also
// gets metrics of the Go runtime and of the process. Shutdown sends the rest.
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

// otlp creates the exporter. It connects when it first sends. If the receiver is away,
// measurements are lost and the work is not affected.
func otlp(ctx context.Context, to target) (sdkmetric.Exporter, error) {
	if to.protocol == protocolGRPC {
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(to.endpoint))
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(to.endpoint))
}
