package telemetry

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
)

// meters returns the provider for an environment of VARIABLE=VALUE.
func meters(tb testing.TB, registry *prometheus.Registry, vars ...string) *sdkmetric.MeterProvider {
	tb.Helper()
	t, err := Start(tb.Context(), Config{Env: env(append(vars, "OTEL_TRACES_EXPORTER=none")...)})
	if err != nil {
		tb.Fatal(err)
	}
	provider, err := t.NewMeterProvider(tb.Context(), registry)
	if err != nil {
		tb.Fatal(err)
	}
	return provider
}

func TestEnvironmentSelectsMetricsExport(t *testing.T) {
	for _, c := range []struct {
		env   []string
		sends bool
		says  string
	}{
		{nil, false, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317"}, true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=https://collector:4317"}, true, ""},
		{[]string{"OTEL_METRICS_EXPORTER=otlp"}, true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317", "OTEL_METRICS_EXPORTER=none"}, false, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317", "OTEL_SDK_DISABLED=true"}, false, ""},
		{[]string{"OTEL_METRICS_EXPORTER=prometheus"}, false, "OTEL_METRICS_EXPORTER"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317"}, false, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{[]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://"}, false, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"},
		{[]string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL"},
	} {
		of, err := Start(t.Context(), Config{Env: env(append(c.env, "OTEL_TRACES_EXPORTER=none")...)})
		sends := of.SendsMetrics()
		if sends != c.sends || (err == nil) != (c.says == "") || err != nil && (!strings.HasPrefix(err.Error(), c.says+": ") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v: %v, %v", c.env, sends, err)
		}
	}
}

// receiver receives metrics by OTLP.
type receiver struct {
	collector.UnimplementedMetricsServiceServer
	names chan []string
}

func (r receiver) Export(_ context.Context, req *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	var names []string
	for _, of := range req.GetResourceMetrics() {
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				names = append(names, m.GetName())
			}
		}
	}
	r.names <- names
	return &collector.ExportMetricsServiceResponse{}, nil
}

func TestMetricsAreSentInAdditionToPrometheus(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := receiver{names: make(chan []string, 10)}
	server := grpc.NewServer()
	collector.RegisterMetricsServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	provider := meters(t, nil, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+listener.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	m, err := NewMetrics(provider.Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	m.DeadLetter(t.Context(), "turn")
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-r.names; !slices.Equal(got, []string{"harness.step.dead_letters"}) {
		t.Errorf("got %v", got)
	}
}

func TestReadinessListsWaitingRoles(t *testing.T) {
	m, registry := measured(t)
	reasons, warnings := map[string]string{}, map[string]string{}
	server := httptest.NewServer(m.Handler(registry, func() map[string]string {
		return map[string]string{"turn": reasons["turn"], "gateway": reasons["gateway"]}
	}, func() map[string]string { return warnings }))
	defer server.Close()
	get := func(path string) (int, string) {
		r, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var b strings.Builder
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, b.String()
	}
	if status, text := get("/readyz"); status != http.StatusOK || strings.Contains(text, "warning") {
		t.Errorf("ready: %d %s", status, text)
	}
	warnings["inference"] = "no process"
	if status, text := get("/readyz"); status != http.StatusOK || !strings.HasSuffix(text, "ok\nwarning: inference: no process\n") {
		t.Errorf("ready with a warning: %d %s", status, text)
	}
	reasons["turn"] = "no tool host"
	if status, text := get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, "turn: no tool host\nwarning: inference: no process\n") || strings.Contains(text, "gateway") {
		t.Errorf("waiting: %d %s", status, text)
	}
	if status, _ := get("/healthz"); status != http.StatusOK {
		t.Errorf("alive: %d", status)
	}
	get("/nonesuch")
	_, text := get("/metrics")
	for _, want := range []string{
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="503",http_route="/readyz"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
