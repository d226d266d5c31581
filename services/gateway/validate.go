package gateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Namespace returns the namespace of a request.
func Namespace(namespace string) (string, error) {
	if namespace == "" {
		return defaultNamespace, nil
	}
	return namespace, input.CheckName("namespace", namespace)
}

// Run returns the run of a request.
func Run(namespace, id string) (runlog.Run, error) {
	namespace, err := Namespace(namespace)
	if err != nil {
		return runlog.Run{}, err
	}
	if id == "" {
		return runlog.Run{}, fault.Invalid("run_id", "must not be empty")
	}
	return runlog.Run{Namespace: namespace, ID: id}, input.CheckName("run_id", id)
}

// CheckStart validates a request to start a run.
func CheckStart(r *harnessv1.StartRunRequest) error {
	if _, err := Namespace(r.GetNamespace()); err != nil {
		return err
	}
	if r.GetRunId() != "" {
		if err := input.CheckName("run_id", r.GetRunId()); err != nil {
			return err
		}
	}
	if err := input.CheckRequestID(r.GetRequestId()); err != nil {
		return err
	}
	if err := checkEntitlements(r.GetEntitlements()); err != nil {
		return err
	}
	return checkSpec(r.GetSpec())
}

// CheckList validates a request for a page and returns the namespace, empty for all, the
// page size and where the page begins.
func CheckList(r *harnessv1.ListRunsRequest) (namespace string, size int, from Place, err error) {
	if namespace, err = Scope(r.GetNamespace()); err != nil {
		return "", 0, Place{}, err
	}
	size = int(r.GetPageSize())
	switch {
	case size == 0:
		size = defaultPage
	case size > maxPage:
		return "", 0, Place{}, fault.Invalid("page_size", "%d: must be from 1 to %d", r.GetPageSize(), maxPage)
	}
	if err := checkStatuses(r.GetStatuses()); err != nil {
		return "", 0, Place{}, err
	}
	from, err = parsePlace(r.GetPageToken())
	return namespace, size, from, err
}

func checkStatuses(statuses []harnessv1.RunStatus) error {
	for _, s := range statuses {
		if _, ok := harnessv1.RunStatus_name[int32(s)]; !ok || s == harnessv1.RunStatus_RUN_STATUS_UNSPECIFIED {
			return fault.Invalid("statuses", "unknown status %d", int32(s))
		}
	}
	return nil
}

// Scope returns the namespace of a list, empty for all.
func Scope(namespace string) (string, error) {
	if namespace == allNamespaces {
		return "", nil
	}
	return Namespace(namespace)
}

// namesTool reports whether a pattern may match a tool: one of those that are known, or one of a
// server, whose tools are known once it has started.
func namesTool(pattern string, names []string, servers []*harnessv1.McpServer) bool {
	if slices.ContainsFunc(names, func(name string) bool { return tool.Matches(pattern, name) }) || pattern == "*" {
		return true
	}
	return slices.ContainsFunc(servers, func(s *harnessv1.McpServer) bool {
		whole := mcptool.Prefix(s)
		fixed, _, open := strings.Cut(pattern, "*")
		return strings.HasPrefix(fixed, whole) || open && strings.HasPrefix(whole, fixed)
	})
}

// CheckTools refuses rules for tools that do not exist, and sub-agents that name one, at all
// levels: a deny with an unknown name would deny nothing, and a sub-agent would lack the tool.
func CheckTools(agent *harnessv1.AgentSpec, names []string) error {
	for i, r := range agent.GetTools() {
		if !namesTool(r.GetName(), names, agent.GetMcp()) {
			return unknownTool(fmt.Sprintf("spec.agent.tools[%d].name", i), r.GetName(), names)
		}
	}
	return checkSubAgentTools("spec.agent.agents", agent.GetAgents(), names, agent.GetMcp())
}

// unknownTool refuses a name of a tool, with the tool that was probably meant, or else with all tools.
func unknownTool(field, name string, names []string) error {
	if near := fault.Nearest(name, names); near != "" {
		return fault.Invalid(field, "unknown tool %q: did you mean %s?", name, near)
	}
	return fault.Invalid(field, "unknown tool %q: must be one of %s", name, strings.Join(names, ", "))
}

func checkSubAgentTools(field string, agents []*harnessv1.SubAgent, names []string, servers []*harnessv1.McpServer) error {
	for i, a := range agents {
		at := fmt.Sprintf("%s[%d]", field, i)
		for j, name := range a.GetTools() {
			if !namesTool(name, names, servers) && tree.Lookup(a.GetAgents(), name) == nil {
				return unknownTool(fmt.Sprintf("%s.tools[%d]", at, j), name, names)
			}
		}
		if err := checkSubAgentTools(at+".agents", a.GetAgents(), names, servers); err != nil {
			return err
		}
	}
	return nil
}
