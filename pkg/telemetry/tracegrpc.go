package telemetry

import (
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ServerOptions returns options that trace the calls of a gRPC server: those that
// change something, and those that are made under a span. Health, reflection and reads
// are excluded, and so are streams of the gateway, whose spans would only show when
// clients disconnect.
func (t *Telemetry) ServerOptions() []grpc.ServerOption {
	if t == nil || t.traces == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(t.handler(served)...))}
}

// DialOptions returns options that trace the calls of a gRPC client that are made under
// a span, and propagate it to the server.
func (t *Telemetry) DialOptions() []grpc.DialOption {
	if t == nil || t.traces == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(t.handler(called)...))}
}

func (t *Telemetry) handler(filter otelgrpc.Filter) []otelgrpc.Option {
	return []otelgrpc.Option{
		otelgrpc.WithTracerProvider(t.traces),
		otelgrpc.WithMeterProvider(metricnoop.NewMeterProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(filter),
	}
}

// streams are the streams of the gateway.
var streams = func() map[string]bool {
	names := map[string]bool{}
	for _, s := range harnessv1.GatewayService_ServiceDesc.Streams {
		names[s.StreamName] = true
	}
	return names
}()

func served(info *stats.RPCTagInfo) bool {
	service, method, _ := strings.Cut(strings.TrimPrefix(info.FullMethodName, "/"), "/")
	if service == harnessv1.GatewayService_ServiceDesc.ServiceName {
		return !streams[method] && !strings.HasPrefix(method, "Get") && !strings.HasPrefix(method, "List")
	}
	return called(info)
}

// called excludes DescribeHost too: a worker calls it once and caches the answer, under
// whichever run is first. And ReadCallOutput, which repeats while a command runs.
func called(info *stats.RPCTagInfo) bool {
	return info.FullMethodName != harnessv1.ToolHostService_DescribeHost_FullMethodName &&
		info.FullMethodName != harnessv1.ToolHostService_ReadCallOutput_FullMethodName && !strings.HasPrefix(info.FullMethodName, "/grpc.")
}
