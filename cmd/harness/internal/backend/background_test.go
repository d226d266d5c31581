package backend

import (
	"slices"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestVariablesOfARun: those that its spec names, and no others.
func TestVariablesOfARun(t *testing.T) {
	spec := &harnessv1.RunSpec{
		Config: &harnessv1.LoopConfig{Sandbox: &harnessv1.SandboxConfig{Env: []string{"A"}}},
		Agent: &harnessv1.AgentSpec{
			Mcp: []*harnessv1.McpServer{{Name: "s", Url: "https://s.example", Headers: map[string]string{"X": "${B}"}}},
			Web: &harnessv1.Web{Search: &harnessv1.WebSearch{Backend: "brave"}},
		},
	}
	environ := []string{"A=1", "B=2", "BRAVE_API_KEY=3", "OTHER_TOKEN=4"}
	if got := environment(environ, nil, variablesOf(spec)).GetCommands(); !slices.Equal(got, environ[:3]) {
		t.Error(got)
	}
}
