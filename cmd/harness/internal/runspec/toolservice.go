package runspec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// addToolServices gives an agent the tool services of the flags.
func (c *Flags) addToolServices(agent *harnessv1.AgentSpec) error {
	services, err := ParseToolServices(c.ToolService)
	if err != nil {
		return err
	}
	for _, s := range services {
		if slices.ContainsFunc(agent.GetMcp(), func(own *harnessv1.McpServer) bool { return own.GetName() == s.GetName() }) {
			return fmt.Errorf("--tool-service: the agent file has a server %q too: leave out one of them", s.GetName())
		}
	}
	agent.Mcp = append(agent.GetMcp(), services...)
	return nil
}

// ParseToolServices reads the values of --tool-service.
func ParseToolServices(values []string) ([]*harnessv1.McpServer, error) {
	var services []*harnessv1.McpServer
	for _, value := range values {
		s, err := parseToolService(value)
		if err != nil {
			return nil, fmt.Errorf("--tool-service: %q: %w", value, err)
		}
		for _, other := range services {
			if other.GetName() == s.GetName() {
				return nil, fmt.Errorf("--tool-service: duplicate name %q", s.GetName())
			}
		}
		services = append(services, s)
	}
	return services, nil
}

// parseToolService reads NAME=HOST:PORT with the settings trust=hints and timeout=D after commas.
func parseToolService(value string) (*harnessv1.McpServer, error) {
	name, rest, found := strings.Cut(value, "=")
	if !found {
		return nil, errors.New("expected NAME=HOST:PORT")
	}
	settings := strings.Split(rest, ",")
	s := &harnessv1.McpServer{Name: strings.TrimSpace(name), Grpc: strings.TrimSpace(settings[0])}
	for _, setting := range settings[1:] {
		key, text, _ := strings.Cut(strings.TrimSpace(setting), "=")
		switch key {
		case "trust":
			if text != mcptool.TrustHints {
				return nil, fmt.Errorf("unknown trust %q: must be hints, or left out", text)
			}
			s.Trust = text
		case "timeout":
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				return nil, fmt.Errorf("timeout %q: expected a duration above 0, such as 30s", text)
			}
			s.Timeout = durationpb.New(d)
		default:
			return nil, fmt.Errorf("unknown setting %q: must be trust=hints or timeout=D", setting)
		}
	}
	if err := gateway.CheckToolService(s); err != nil {
		if field := fault.FieldOf(err); field != nil {
			return nil, errors.New(field.Message)
		}
		return nil, err
	}
	return s, nil
}
