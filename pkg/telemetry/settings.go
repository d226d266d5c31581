package telemetry

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The environment variables that are read here.
const (
	envDisabled   = "OTEL_SDK_DISABLED"
	envEndpoint   = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envProtocol   = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envSampler    = "OTEL_TRACES_SAMPLER"
	envSamplerArg = "OTEL_TRACES_SAMPLER_ARG"
	envService    = "OTEL_SERVICE_NAME"
	envResource   = "OTEL_RESOURCE_ATTRIBUTES"
	envContent    = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
)

// signal is a kind of telemetry: the names of its variables, and its path.
type signal struct {
	exporter, endpoint, protocol string
	path                         string
	hint                         string // added to the error for an unknown exporter
}

var (
	tracesSignal = signal{
		exporter: "OTEL_TRACES_EXPORTER", endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
		path: "traces",
	}
	metricsSignal = signal{
		exporter: "OTEL_METRICS_EXPORTER", endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
		path: "metrics", hint: "; for Prometheus say --metrics ADDR",
	}
)

// target is where a signal is sent.
type target struct {
	sends    bool
	protocol string
	endpoint string // the complete URL
}

// Protocols of OTLP.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

// settings are the settings of the environment.
type settings struct {
	traces   target
	metrics  target
	sampler  sdktrace.Sampler
	service  string
	resource []attribute.KeyValue
	content  bool
}

// readSettings reads the environment. It also checks settings of signals that are not
// exported, so that an invalid value is found early.
func readSettings(env func(string) string) (settings, error) {
	s := settings{service: env(envService)}
	disabled, err := flag(env, envDisabled)
	if err != nil {
		return s, err
	}
	if s.content, err = flag(env, envContent); err != nil {
		return s, err
	}
	if s.resource, err = resourceAttributes(env(envResource)); err != nil {
		return s, err
	}
	if s.sampler, err = sampler(env); err != nil {
		return s, err
	}
	if s.traces, err = readTarget(env, tracesSignal); err != nil {
		return s, err
	}
	if s.metrics, err = readTarget(env, metricsSignal); err != nil {
		return s, err
	}
	s.traces.sends = s.traces.sends && !disabled && s.sampler != nil
	s.metrics.sends = s.metrics.sends && !disabled
	return s, nil
}

// Ports that collectors listen on.
const (
	portGRPC = "4317"
	portHTTP = "4318"
)

// readTarget reads where a signal is sent and how.
func readTarget(env func(string) string, of signal) (target, error) {
	protocolName := envProtocol
	if env(of.protocol) != "" {
		protocolName = of.protocol
	}
	name, whole := envEndpoint, false
	if env(of.endpoint) != "" {
		name, whole = of.endpoint, true
	}
	t := target{protocol: env(protocolName), endpoint: env(name)}
	switch exporter := env(of.exporter); exporter {
	case "":
		t.sends = t.endpoint != ""
	case "otlp":
		t.sends = true
	case "none":
	default:
		return t, fmt.Errorf("%s: %q: expected otlp or none%s", of.exporter, exporter, of.hint)
	}
	at := &url.URL{Scheme: "http", Host: "localhost:" + portHTTP}
	if t.protocol == protocolGRPC {
		at.Host = "localhost:" + portGRPC
	}
	if t.endpoint != "" {
		var err error
		if at, err = url.Parse(t.endpoint); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" {
			return t, fmt.Errorf("%s: %q: expected http://HOST:PORT or https://HOST:PORT, such as http://localhost:%s", name, t.endpoint, portGRPC)
		}
	}
	switch t.protocol {
	case "":
		t.protocol = protocolHTTP
		if at.Port() == portGRPC {
			t.protocol = protocolGRPC
		}
	case protocolGRPC, protocolHTTP:
	default:
		return t, fmt.Errorf("%s: %q: expected %s or %s", protocolName, t.protocol, protocolGRPC, protocolHTTP)
	}
	if t.protocol == protocolHTTP && !whole {
		at = at.JoinPath("v1", of.path)
	}
	t.endpoint = at.String()
	return t, nil
}

// sampler reads the sampler; nil for one that never samples.
func sampler(env func(string) string) (sdktrace.Sampler, error) {
	name, text := env(envSampler), env(envSamplerArg)
	ratio := 1.0
	if text != "" {
		var err error
		if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("%s: %q: expected a number from 0 to 1", envSamplerArg, text)
		}
	}
	switch name {
	case "", "parentbased_always_on":
		return sdktrace.ParentBased(sdktrace.AlwaysSample()), nil
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample()), nil
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio)), nil
	case "always_on":
		return sdktrace.AlwaysSample(), nil
	case "always_off":
		return nil, nil
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(ratio), nil
	}
	return nil, fmt.Errorf("%s: %q: expected always_on, always_off, traceidratio, or one of these with the prefix parentbased_", envSampler, name)
}

// resourceAttributes reads KEY=VALUE,KEY=VALUE, values percent-encoded.
func resourceAttributes(text string) ([]attribute.KeyValue, error) {
	var out []attribute.KeyValue
	for _, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return nil, fmt.Errorf("%s: %q: expected KEY=VALUE,KEY=VALUE, values percent-encoded", envResource, pair)
		}
		out = append(out, attribute.String(key, decoded))
	}
	return out, nil
}

func flag(env func(string) string, name string) (bool, error) {
	switch text := env(name); strings.ToLower(text) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %q: expected true or false", name, text)
	}
}
