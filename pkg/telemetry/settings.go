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
	envDisabled       = "OTEL_SDK_DISABLED"
	envTracesExporter = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envSampler        = "OTEL_TRACES_SAMPLER"
	envSamplerArg     = "OTEL_TRACES_SAMPLER_ARG"
	envService        = "OTEL_SERVICE_NAME"
	envResource       = "OTEL_RESOURCE_ATTRIBUTES"
	envContent        = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
)

// Protocols of OTLP.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

// settings is what the environment says.
type settings struct {
	traces   bool
	protocol string
	endpoint string // URL, whole
	sampler  sdktrace.Sampler
	service  string
	resource []attribute.KeyValue
	content  bool
}

// readSettings reads the environment. What nothing is exported for is checked too: a
// wrong value is not to show months later.
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
	if err := s.target(env); err != nil {
		return s, err
	}
	switch exporter := env(envTracesExporter); exporter {
	case "":
		s.traces = env(envEndpoint) != "" || env(envTracesEndpoint) != ""
	case "otlp":
		s.traces = true
	case "none":
	default:
		return s, fmt.Errorf("%s: %q: want otlp or none", envTracesExporter, exporter)
	}
	s.traces = s.traces && !disabled && s.sampler != nil
	return s, nil
}

// Ports that collectors listen on.
const (
	portGRPC = "4317"
	portHTTP = "4318"
)

// target reads where spans go and how.
func (s *settings) target(env func(string) string) error {
	protocolName := envProtocol
	if env(envTracesProtocol) != "" {
		protocolName = envTracesProtocol
	}
	name, whole := envEndpoint, false
	if env(envTracesEndpoint) != "" {
		name, whole = envTracesEndpoint, true
	}
	s.protocol, s.endpoint = env(protocolName), env(name)
	at := &url.URL{Scheme: "http", Host: "localhost:" + portHTTP}
	if s.protocol == protocolGRPC {
		at.Host = "localhost:" + portGRPC
	}
	if s.endpoint != "" {
		var err error
		if at, err = url.Parse(s.endpoint); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" {
			return fmt.Errorf("%s: %q: want http://HOST:PORT or https://HOST:PORT, such as http://localhost:%s", name, s.endpoint, portGRPC)
		}
	}
	switch s.protocol {
	case "":
		s.protocol = protocolHTTP
		if at.Port() == portGRPC {
			s.protocol = protocolGRPC
		}
	case protocolGRPC, protocolHTTP:
	default:
		return fmt.Errorf("%s: %q: want %s or %s", protocolName, s.protocol, protocolGRPC, protocolHTTP)
	}
	if s.protocol == protocolHTTP && !whole {
		at = at.JoinPath("v1", "traces")
	}
	s.endpoint = at.String()
	return nil
}

// sampler reads the sampler; nil for one that never samples.
func sampler(env func(string) string) (sdktrace.Sampler, error) {
	name, text := env(envSampler), env(envSamplerArg)
	ratio := 1.0
	if text != "" {
		var err error
		if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("%s: %q: want a number from 0 to 1", envSamplerArg, text)
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
	return nil, fmt.Errorf("%s: %q: want always_on, always_off, traceidratio, or one of these with parentbased_ before it", envSampler, name)
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
			return nil, fmt.Errorf("%s: %q: want KEY=VALUE,KEY=VALUE, values percent-encoded", envResource, pair)
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
		return false, fmt.Errorf("%s: %q: want true or false", name, text)
	}
}
