package telemetry

import (
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	values := map[string]string{}
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		values[k] = v
	}
	return func(name string) string { return values[name] }
}

func TestNothingIsExportedByDefault(t *testing.T) {
	for vars, want := range map[string]bool{
		"":                    false,
		"OTEL_SERVICE_NAME=x": false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317":                                true,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318/v1/traces":               true,
		"OTEL_TRACES_EXPORTER=otlp":                                                true,
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c:4317":                        false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_TRACES_EXPORTER=none":      false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_SDK_DISABLED=true":         false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_SDK_DISABLED=false":        true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_TRACES_SAMPLER=always_off": false,
	} {
		s, err := readSettings(env(strings.Fields(vars)...))
		if err != nil || s.traces.sends != want {
			t.Errorf("%q: traces %v, %v", vars, s.traces.sends, err)
		}
	}
}

func TestSpanTarget(t *testing.T) {
	for vars, want := range map[string][2]string{
		"OTEL_TRACES_EXPORTER=otlp":                                                                                                {protocolHTTP, "http://localhost:4318/v1/traces"},
		"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                                                               {protocolGRPC, ""},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317":                                                                                {protocolGRPC, "http://c:4317"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":                                      {protocolHTTP, "http://c:4317/v1/traces"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://c/otlp/":                                                                              {protocolHTTP, "https://c/otlp/v1/traces"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c/mine":                                                                        {protocolHTTP, "https://c/mine"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1 OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://b:2 OTEL_EXPORTER_OTLP_PROTOCOL=grpc":    {protocolGRPC, "http://b:2"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc": {protocolGRPC, "http://c:1"},
	} {
		if want[1] == "" {
			want[1] = "http://localhost:4317"
		}
		s, err := readSettings(env(strings.Fields(vars)...))
		if err != nil || s.traces.protocol != want[0] || s.traces.endpoint != want[1] {
			t.Errorf("%q: %s to %s, %v; want %v", vars, s.traces.protocol, s.traces.endpoint, err, want)
		}
	}
}

func TestMetricTarget(t *testing.T) {
	for vars, want := range map[string]target{
		"": {false, protocolHTTP, "http://localhost:4318/v1/metrics"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317":                                {true, protocolGRPC, "http://c:4317"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318":                                {true, protocolHTTP, "http://c:4318/v1/metrics"},
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c:9/mine":                      {true, protocolHTTP, "http://c:9/mine"},
		"OTEL_METRICS_EXPORTER=otlp OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=grpc":      {true, protocolGRPC, "http://localhost:4317"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_METRICS_EXPORTER=none":     {false, protocolGRPC, "http://c:4317"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_SDK_DISABLED=true":         {false, protocolGRPC, "http://c:4317"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_TRACES_SAMPLER=always_off": {true, protocolGRPC, "http://c:4317"},
	} {
		s, err := readSettings(env(strings.Fields(vars)...))
		if err != nil || s.metrics != want {
			t.Errorf("%q: %+v, %v; want %+v", vars, s.metrics, err, want)
		}
	}
}

func TestInvalidValuesAreRefusedInOneLine(t *testing.T) {
	for vars, want := range map[string]string{
		"OTEL_TRACES_EXPORTER=zipkin":                                  `OTEL_TRACES_EXPORTER: "zipkin": expected otlp or none`,
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json":                        `OTEL_EXPORTER_OTLP_PROTOCOL: "http/json": expected grpc or http/protobuf`,
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=udp":                       `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "udp": expected grpc or http/protobuf`,
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317":                   `OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317": expected http://HOST:PORT or https://HOST:PORT, such as http://localhost:4317`,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://":                   `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://": expected`,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:port":                    `OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:port": expected`,
		"OTEL_TRACES_SAMPLER=sometimes":                                `OTEL_TRACES_SAMPLER: "sometimes": expected always_on, always_off, traceidratio`,
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=7":   `OTEL_TRACES_SAMPLER_ARG: "7": expected a number from 0 to 1`,
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN": `OTEL_TRACES_SAMPLER_ARG: "NaN": expected a number from 0 to 1`,
		"OTEL_RESOURCE_ATTRIBUTES=team":                                `OTEL_RESOURCE_ATTRIBUTES: "team": expected KEY=VALUE`,
		"OTEL_RESOURCE_ATTRIBUTES=a=%zz":                               `OTEL_RESOURCE_ATTRIBUTES: "a=%zz": expected KEY=VALUE`,
		"OTEL_SDK_DISABLED=1":                                          `OTEL_SDK_DISABLED: "1": expected true or false`,
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=yes":       `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "yes": expected true or false`,
	} {
		_, err := Start(t.Context(), Config{Env: env(strings.Fields(vars)...)})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %s", vars, err, want)
		}
	}
}

func TestResourceIdentifiesProcess(t *testing.T) {
	who := func(cfg Config, vars ...string) string {
		s, err := readSettings(env(vars...))
		if err != nil {
			t.Fatal(err)
		}
		return resourceOf(cfg, s).String()
	}
	if got := who(Config{Role: "turn", Instance: "i", Version: "v1"}); got != "service.instance.id=i,service.name=harness-turn,service.version=v1" {
		t.Error(got)
	}
	if got := who(Config{Instance: "i", Version: "v1"}, "OTEL_RESOURCE_ATTRIBUTES=service.version=v2, team=a%20b"); got != "service.instance.id=i,service.name=harness,service.version=v2,team=a b" {
		t.Error(got)
	}
	if got := who(Config{Instance: "i", Version: "v1"}, "OTEL_SERVICE_NAME=mine", "OTEL_RESOURCE_ATTRIBUTES=service.name=theirs"); got != "service.instance.id=i,service.name=mine,service.version=v1" {
		t.Error(got)
	}
}
