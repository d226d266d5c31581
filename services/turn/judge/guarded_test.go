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
)

// TestFileToolsAskForGuardedPlaces, under the rules, grants and yolo that hold for commands.
func TestFileToolsAskForGuardedPlaces(t *testing.T) {
	writes := &harnessv1.ToolSpec{
		Name: "write_file", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Description: "d", ParametersSchema: `{"type":"object"}`,
		Annotations: &harnessv1.ToolAnnotations{Writes: true, Idempotent: true},
	}
	reads := &harnessv1.ToolSpec{
		Name: "read_file", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Description: "d", ParametersSchema: `{"type":"object"}`,
		Annotations: &harnessv1.ToolAnnotations{Reads: true, Idempotent: true},
	}
	set, err := tool.NewSet([]*harnessv1.ToolSpec{writes, reads})
	if err != nil {
		t.Fatal(err)
	}
	const run, ask, deny = harnessv1.CallDisposition_CALL_DISPOSITION_RUN, harnessv1.CallDisposition_CALL_DISPOSITION_ASK, harnessv1.CallDisposition_CALL_DISPOSITION_DENIED
	rule := func(d harnessv1.ToolDecision) []*harnessv1.ToolRule {
		return []*harnessv1.ToolRule{{Name: "write_file", Policy: d}}
	}
	for name, c := range map[string]struct {
		tool, path string
		rules      []*harnessv1.ToolRule
		granted    []string
		yolo       bool
		restore    bool
		want       harnessv1.CallDisposition
		guarded    bool
	}{
		"another file":     {path: "a.txt", want: run},
		"git":              {path: ".git/config", want: ask, guarded: true},
		"instructions":     {path: "sub/AGENTS.md", want: ask, guarded: true},
		"reading":          {tool: "read_file", path: ".git/config", want: run},
		"allowed by rule":  {path: ".envrc", rules: rule(harnessv1.ToolDecision_TOOL_DECISION_ALLOW), want: run, guarded: true},
		"denied by rule":   {path: ".envrc", rules: rule(harnessv1.ToolDecision_TOOL_DECISION_DENY), want: deny, guarded: true},
		"granted":          {path: ".envrc", granted: []string{"write_file"}, want: run, guarded: true},
		"granted to other": {path: ".envrc", granted: []string{"edit_file"}, want: ask, guarded: true},
		"yolo":             {path: ".envrc", yolo: true, want: run, guarded: true},

		"restored, by rule": {path: ".envrc", restore: true, rules: rule(harnessv1.ToolDecision_TOOL_DECISION_ALLOW), want: ask, guarded: true},
		"restored, denied":  {path: ".envrc", restore: true, rules: rule(harnessv1.ToolDecision_TOOL_DECISION_DENY), want: deny, guarded: true},
		"restored, granted": {path: ".envrc", restore: true, granted: []string{"write_file"}, want: ask, guarded: true},
		"restored, yolo":    {path: ".envrc", restore: true, yolo: true, want: ask, guarded: true},
		"restored, another": {path: "a.txt", restore: true, yolo: true, want: run},
	} {
		p, err := policy.Compile(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		s := Turn{
			Snapshot: &harnessv1.Snapshot{GrantedTools: c.granted, Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: &c.yolo}}},
			Offer:    &offer.Offer{Set: set}, Definition: &agent.Definition{Policy: p},
		}
		if c.restore {
			s.Snapshot.Config.Sandbox = &harnessv1.SandboxConfig{Guarded: harnessv1.GuardedMode_GUARDED_MODE_RESTORE}
		}
		if c.tool == "" {
			c.tool = "write_file"
		}
		got := (&Calls{t: s}).Prepare(&harnessv1.ToolCall{Id: "c", Name: c.tool, Arguments: content.Inline(`{"path":"` + c.path + `","content":"x"}`)})
		if got.GetDisposition() != c.want || got.GetGuarded() != c.guarded || got.GetOnlyOnce() {
			t.Errorf("%s: got %v", name, got)
		}
		if c.want == ask && (!strings.Contains(got.GetMessage(), c.path) || !strings.Contains(got.GetMessage(), ": a ")) {
			t.Errorf("%s: a person reads %q", name, got.GetMessage())
		}
	}
}
