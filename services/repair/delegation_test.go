package repair_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// TestAgentsReadWhenToDelegate: an agent with sub-agents reads their names and when to call them, in the part
// of the system prompt about tools.
func TestAgentsReadWhenToDelegate(t *testing.T) {
	spec := &harnessv1.RunSpec{Agent: &harnessv1.AgentSpec{Agents: []*harnessv1.SubAgent{{Name: "explore"}, {Name: "migrate"}}}}
	prompt := func(tools bool) string {
		config := runstate.Resolve(&harnessv1.LoopConfig{Prompt: &harnessv1.PromptConfig{Tools: proto.Bool(tools)}}, 0)
		return repair.SystemPrompt(spec, config, nil, nil)
	}
	if got := prompt(true); !strings.Contains(got, "Sub-agents: explore, migrate\n") {
		t.Errorf("the prompt has nothing of sub-agents:\n%s", got)
	}
	if got := prompt(false); strings.Contains(got, "migrate") {
		t.Errorf("the prompt has no part about tools, but names sub-agents:\n%s", got)
	}
	spec.Agent.Agents = nil
	if got := prompt(true); strings.Contains(got, "Sub-agents") {
		t.Errorf("an agent without sub-agents reads of them:\n%s", got)
	}
}
