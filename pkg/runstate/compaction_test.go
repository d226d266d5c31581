package runstate_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func TestCompacts(t *testing.T) {
	config := runstate.Resolve(nil, 0)
	off := proto.CloneOf(config)
	off.Context.Compaction = proto.Bool(false)
	refused := &harnessv1.TokenBudget{Refusals: 1}
	for name, c := range map[string]struct {
		s         *harnessv1.Snapshot
		want, may bool
	}{
		"by default":            {&harnessv1.Snapshot{Config: config, Workflow: workflow.Default()}, true, true},
		"in a cycle by default": {&harnessv1.Snapshot{Config: config}, true, true},
		"switched off":          {&harnessv1.Snapshot{Config: off, Workflow: workflow.Default()}, false, false},
		"without its executor":  {&harnessv1.Snapshot{Config: config, Workflow: []string{workflow.Repair, workflow.Turn, workflow.StopDecision}}, false, false},
		"in an older record":    {&harnessv1.Snapshot{Config: &harnessv1.LoopConfig{}}, false, false},
		"after a refusal":       {&harnessv1.Snapshot{Config: config, TokenBudget: refused}, true, false},
	} {
		if got, may := runstate.Compacts(c.s), runstate.MayCompact(c.s); got != c.want || may != c.may {
			t.Errorf("%s: got %v and %v, want %v and %v", name, got, may, c.want, c.may)
		}
	}
}

func TestCheckOverhead(t *testing.T) {
	prompt := strings.Repeat("a word ", 100)
	tool := &harnessv1.ToolSpec{Name: "read_file", Description: strings.Repeat("Reads. ", 50), ParametersSchema: `{"type":"object"}`}
	tools := []*harnessv1.ToolSpec{tool, tool}
	size := func(text string) uint32 { return uint32(tokens.Count("gpt-4o", text)) }
	prompted := 4 + size(prompt)
	listed := 2 * (4 + size(tool.GetName()) + size(tool.GetDescription()) + size(tool.GetParametersSchema()))
	for name, c := range map[string]struct {
		window uint32
		want   string
	}{
		"unknown":   {0, ""},
		"large":     {100_000, ""},
		"just fits": {prompted + listed + 50 + 1, ""},
		"just too small": {prompted + listed + 50, fmt.Sprintf(
			"the system prompt has %d tokens, the 2 tools have %d, and 50 are kept free, but the window has only %d: ", prompted, listed, prompted+listed+50)},
	} {
		config := &harnessv1.ContextConfig{MaxInputTokens: &c.window, SafetyBuffer: proto.Uint32(50)}
		if err := runstate.CheckOverhead("gpt-4o", config, prompt, tools); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
