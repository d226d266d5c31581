package repair_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// TestReadersAreResolvedAtTheStart: the state has which sub-agents cannot change anything, and those of a graph work side by side.
func TestReadersAreResolvedAtTheStart(t *testing.T) {
	host := harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST
	reads := func(name string) *harnessv1.ToolSpec {
		return &harnessv1.ToolSpec{Name: name, Origin: host, Annotations: &harnessv1.ToolAnnotations{Reads: true}}
	}
	writes := &harnessv1.ToolSpec{Name: "write_file", Origin: host, Annotations: &harnessv1.ToolAnnotations{Writes: true}}
	agent := func(name string, tools ...string) *harnessv1.SubAgent {
		return &harnessv1.SubAgent{Name: name, Description: "Works.", Instructions: "Work.", Tools: tools}
	}
	spec := spec()
	spec.Agent.Agents = []*harnessv1.SubAgent{agent("reader", "read_file"), agent("writer", "write_file"), agent("any"), agent("server", "mcp__s__list")}
	spec.Agent.Mcp = []*harnessv1.McpServer{{Name: "s", Command: "s"}}
	spec.Graph = []*harnessv1.GraphTask{{Id: "a", Agent: "reader", Prompt: "p"}, {Id: "b", Agent: "server", Prompt: "p"}, {Id: "c", Agent: "reader", Prompt: "p"}, {Id: "d", Agent: "writer", Prompt: "p"}, {Id: "e", Agent: "any", Prompt: "p"}}
	text, err := mcptool.Encode(&harnessv1.McpTools{Tools: []*harnessv1.McpTool{{Server: "s", Spec: reads("mcp__s__list")}}})
	if err != nil {
		t.Fatal(err)
	}
	observed := nothing()
	observed[1].GetEnvironment().Tools = []*harnessv1.ToolSpec{reads("read_file"), writes}
	observed = append(observed, &harnessv1.Observation{Key: repair.NeedMcp, Value: &harnessv1.Observation_Mcp{Mcp: &harnessv1.McpSeen{
		State: &harnessv1.McpState{Tools: content.Inline(text)},
	}}})
	o := decide(t, first(begun(), spec, observed...))
	got := map[string]bool{}
	for _, a := range o.GetStep().GetSnapshot().GetDefinition().GetAgents() {
		got[a.GetName()] = a.GetReadOnly()
	}
	if !got["reader"] || got["writer"] || got["any"] || !got["server"] {
		t.Errorf("read-only are %v", got)
	}
	working := ""
	for _, c := range o.GetStep().GetSnapshot().GetChildren() {
		if c.GetOrder() > 0 {
			working += c.GetAgent() + " "
		}
	}
	if working != "reader server reader writer " {
		t.Errorf("at work are %s", working)
	}
	if spec.GetAgent().GetAgents()[0].ReadOnly != nil || proto.Size(spec) == 0 {
		t.Error("the spec was changed")
	}
}
