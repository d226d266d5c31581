package gateway

import (
	"sort"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestOverhead: the tokens of the instructions and tools of a run are only counted if they
// could fill its window.
func TestOverhead(t *testing.T) {
	words := func(n int) string { return strings.Repeat("word ", n) }
	large := &harnessv1.ToolSpec{Name: "large", Description: words(6000), Annotations: &harnessv1.ToolAnnotations{Writes: true}}
	for name, c := range map[string]struct {
		change func(*harnessv1.RunSpec)
		host   []*harnessv1.ToolSpec
		may    bool
		want   string // part of the error
	}{
		"a usual run":             {func(*harnessv1.RunSpec) {}, []*harnessv1.ToolSpec{large}, false, ""},
		"a small window":          {window(20_000), []*harnessv1.ToolSpec{large}, true, ""},
		"the host's tools":        {window(6000), []*harnessv1.ToolSpec{large}, true, "the window has only 6000"},
		"another mode":            {func(s *harnessv1.RunSpec) { window(6000)(s); s.Agent.Mode = "plan" }, []*harnessv1.ToolSpec{large}, true, ""},
		"the client's tools":      {func(s *harnessv1.RunSpec) { window(6000)(s); s.ClientTools = []*harnessv1.ToolSpec{large} }, nil, true, "the window has only 6000"},
		"the client's many tools": {func(s *harnessv1.RunSpec) { s.ClientTools = many(20, words(8000)) }, nil, true, "the window has only 128000"},
		"instructions":            {func(s *harnessv1.RunSpec) { window(6000)(s); s.Agent.Instructions = words(6000) }, nil, true, "the system prompt has 600"},
		"long instructions":       {func(s *harnessv1.RunSpec) { s.Agent.Instructions = words(20_000) }, nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := validStart().GetSpec()
			s.Agent.Model = "nobody:knows"
			c.change(s)
			if got := MayFillWindow(s); got != c.may {
				t.Errorf("may fill the window: %v", got)
			}
			if err := CheckOverhead(s, c.host); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	s := validStart().GetSpec()
	if got := WindowField(s); got != "spec.agent.model" {
		t.Errorf("the window is set by %s", got)
	}
	window(6000)(s)
	if got := WindowField(s); got != "spec.config.context.max_input_tokens" {
		t.Errorf("the window is set by %s", got)
	}
}

func window(n uint32) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) { s.Config.Context.MaxInputTokens = proto.Uint32(n) }
}

func many(n int, description string) []*harnessv1.ToolSpec {
	tools := make([]*harnessv1.ToolSpec, n)
	for i := range tools {
		tools[i] = &harnessv1.ToolSpec{Name: "tool", Description: description}
	}
	return tools
}

// TestReadArtifactIsOverhead: a run needs room for the tool that reads back, with and without compaction.
func TestReadArtifactIsOverhead(t *testing.T) {
	least := func(compaction bool) int {
		return sort.Search(20_000, func(n int) bool {
			s := validStart().GetSpec()
			s.Agent.Model = "nobody:knows"
			window(uint32(n) + 500)(s)
			s.Config.Context.Compaction = proto.Bool(compaction)
			return CheckOverhead(s, nil) == nil
		})
	}
	if with, without := least(true), least(false); with < without || without+50 < with {
		t.Errorf("a run needs %d tokens with compaction, and %d without", with, without)
	}
}
