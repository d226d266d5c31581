package gateway

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// CheckToolService refuses a ToolService whose name or address cannot be used.
func CheckToolService(s *harnessv1.McpServer) error {
	switch name := s.GetName(); {
	case !serverName().MatchString(name):
		return fault.Invalid("name", "invalid name %q: must match [A-Za-z0-9_-]{1,40}", content.Clip(name, 80))
	case name == "mcp", strings.HasPrefix(name, "mcp_"):
		return fault.Invalid("name", "invalid name %q: tools of MCP servers begin with mcp_, so a tool service has another name", name)
	case !isTarget(s.GetGrpc()):
		return fault.Invalid("grpc", "invalid address %q: must be HOST:PORT, such as 127.0.0.1:9000", content.Clip(s.GetGrpc(), 200))
	}
	return nil
}

// WithServices returns a spec whose agent has the tool services of the tool host's operator too. A
// server of the agent replaces the service of its name. Services that the spec has from another
// request are removed.
func WithServices(spec *harnessv1.RunSpec, services []*harnessv1.McpServer) *harnessv1.RunSpec {
	if len(services) == 0 && !slices.ContainsFunc(spec.GetAgent().GetMcp(), (*harnessv1.McpServer).GetHost) {
		return spec
	}
	spec = proto.CloneOf(spec)
	removeServices(spec)
	for _, s := range services {
		has := func(own *harnessv1.McpServer) bool { return own.GetName() == s.GetName() }
		if slices.ContainsFunc(spec.GetAgent().GetMcp(), has) || len(spec.GetAgent().GetMcp()) >= maxServers {
			continue
		}
		if spec.Agent == nil {
			spec.Agent = &harnessv1.AgentSpec{}
		}
		spec.Agent.Mcp = append(spec.Agent.Mcp, s)
	}
	return spec
}

// removeServices removes the tool services of the tool host's operator from a spec.
func removeServices(spec *harnessv1.RunSpec) {
	if a := spec.GetAgent(); a != nil {
		a.Mcp = slices.DeleteFunc(a.Mcp, (*harnessv1.McpServer).GetHost)
	}
}
