package judge

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/turn/offer"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// TestCallsOfChangedTools: they ask, even if a rule or yolo allows the tool, and are denied in a
// run without a person. Requests keep the tool, and searches do not find it.
func TestCallsOfChangedTools(t *testing.T) {
	for _, autonomous := range []bool{false, true} {
		changed := &harnessv1.McpTool{
			Server: "s", Definition: &harnessv1.McpDefinition{Tool: "a", Digest: "1"}, Change: &harnessv1.McpChange{Digest: "2", Difference: "+ other"},
			Spec: &harnessv1.ToolSpec{
				Name: "mcp__s__a", Description: "a tool", ParametersSchema: `{"type":"object"}`, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
				Annotations: &harnessv1.ToolAnnotations{Writes: true, Asks: true},
			},
		}
		servers := mcptool.NewIndex(&harnessv1.McpTools{Tools: []*harnessv1.McpTool{changed}})
		shown, _ := servers.Shown(&harnessv1.McpState{}, autonomous)
		set, err := tool.NewSet(shown)
		if err != nil || len(shown) != 1 {
			t.Fatalf("autonomous %v: shown %v, %v", autonomous, shown, err)
		}
		p, err := policy.Compile([]*harnessv1.ToolRule{{Name: "mcp__*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}})
		if err != nil {
			t.Fatal(err)
		}
		yolo := true
		j := &Calls{t: Turn{
			Snapshot: &harnessv1.Snapshot{Autonomous: autonomous, Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: &yolo}}},
			Offer:    &offer.Offer{Set: set, Servers: servers}, Definition: &agent.Definition{Policy: p},
		}}
		want := harnessv1.CallDisposition_CALL_DISPOSITION_ASK
		if autonomous {
			want = harnessv1.CallDisposition_CALL_DISPOSITION_DENIED
		}
		if got := j.Prepare(&harnessv1.ToolCall{Id: "c", Name: "mcp__s__a", Arguments: content.Inline(`{}`)}); got.GetDisposition() != want {
			t.Errorf("autonomous %v: %v", autonomous, got)
		}
		if found := strings.Contains(j.t.Offer.Find(j.t.Snapshot, `{"query":"a"}`), "mcp__s__a"); found == autonomous {
			t.Errorf("autonomous %v: found %v", autonomous, found)
		}
	}
}
