package repair_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
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

// TestUsedUpDefinition: a sub-agent that has used up what its definition allows ends, and its call has a result with the budget and its
// answer. One that has used up its share of the run's own budget is kept.
func TestUsedUpDefinition(t *testing.T) {
	for _, own := range []bool{true, false} {
		s := delegated("look")
		s.Children[0].Lease.Tokens = proto.Uint64(100)
		if own {
			s.Definition.Agents[0].Budgets = &harnessv1.Budgets{Tokens: proto.Uint64(100)}
		} else {
			s.Config.Budgets.Tokens = proto.Uint64(100)
		}
		used := func(r *harnessv1.ChildReport) { r.Usage = &harnessv1.Usage{InputTokens: 100} }
		o := drain(t, s, reported("c1", 5, 1, parkedRun, "budget_exceeded:tokens", used))
		c := child(o, "c1")
		if !own {
			if c.GetWant() != work || c.GetExhausted() != "" || events(o) != "agent.waiting input.accepted" {
				t.Errorf("of the run's budget: %s, %v", events(o), c)
			}
			continue
		}
		if c.GetWant() != end || c.GetOrder() != 2 || c.GetExhausted() != "tokens" || verdict(o) != "park agent" {
			t.Fatalf("%s: %v", verdict(o), c)
		}
		o = drain(t, o.GetStep().GetSnapshot(), reported("c1", 7, 2, harnessv1.RunStatus_RUN_STATUS_CANCELLED, "cancelled", used))
		if len(o.GetAppended()) != 1 || !o.GetAppended()[0].GetIsError() {
			t.Fatalf("%s: %v", verdict(o), o.GetAppended())
		}
		text := content.Text(o.GetAppended()[0].GetContent())
		for _, want := range []string{"CANCELLED", "100 tokens", "budget_exceeded:tokens", "that its definition allows", "It is so."} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in %q", want, text)
			}
		}
	}
}
