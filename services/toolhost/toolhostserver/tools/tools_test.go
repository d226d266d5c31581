package tools

import (
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

func TestSchemasAcceptTheArguments(t *testing.T) {
	registry, err := tool.NewRegistry(All()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]string{
		ReadFile:      `{"path":"a","offset":1,"limit":2}`,
		WriteFile:     `{"path":"a","content":""}`,
		EditFile:      `{"path":"a","old":"x","new":""}`,
		ListDirectory: ``,
		FindFiles:     `{"pattern":"**/*.go"}`,
		SearchFiles:   `{"pattern":"x","path":"a"}`,
		RunCommand:    `{"command":"true","timeout_seconds":5}`,
		CommandOutput: `{"id":"bg1","offset":5}`,
		StopCommand:   `{"id":"bg1"}`,

		webtool.Fetch:     `{"url":"https://example.com","part":2}`,
		webtool.Request:   `{"url":"https://example.com","method":"POST","headers":{"a":"b"},"body":"x"}`,
		webtool.Search:    `{"query":"x","count":3}`,
		webtool.Calculate: `{"expression":"1+1"}`,
	} {
		if err := registry.Validate(name, arguments); err != nil {
			t.Error(err)
		}
		if err := registry.Validate(name, `{"unknown":1}`); err == nil {
			t.Errorf("%s accepts an unknown argument", name)
		}
	}
}

func TestAllHasTheOrderThatModelsSee(t *testing.T) {
	var names []string
	for _, tool := range All() {
		names = append(names, tool.Spec.GetName())
	}
	want := []string{ReadFile, WriteFile, EditFile, tree.MergeTool, ListDirectory, tree.SkillTool, FindFiles, SearchFiles, RunCommand, CommandOutput, StopCommand, webtool.Fetch, webtool.Request, webtool.Search, webtool.Calculate, CountWords}
	if !slices.Equal(names, want) {
		t.Fatalf("got %v, want %v", names, want)
	}
}

func TestAnnotationsAreConsistent(t *testing.T) {
	for _, tool := range All() {
		name, a := tool.Spec.GetName(), tool.Spec.GetAnnotations()
		if origin := tool.Spec.GetOrigin(); origin != harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST {
			t.Errorf("%s: origin %v", name, origin)
		}
		if a.GetWrites() && a.GetParallelSafe() {
			t.Errorf("%s writes and is parallel safe", name)
		}
		if a.GetExecutes() && a.GetIdempotent() {
			t.Errorf("%s executes commands and is idempotent", name)
		}
		if a.GetDurability() == harnessv1.Durability_DURABILITY_UNSPECIFIED {
			t.Errorf("%s has no durability", name)
		}
	}
}

// TestDurability: what compaction may do with the results of each tool, and what survives.
func TestDurability(t *testing.T) {
	for name, want := range map[string]string{
		CommandOutput: "EPHEMERAL", StopCommand: "EPHEMERAL", ListDirectory: "EPHEMERAL", FindFiles: "EPHEMERAL", SearchFiles: "EPHEMERAL", ReadFile: "REPLAYABLE",
		WriteFile: "ANCHORING path success", EditFile: "ANCHORING path success", RunCommand: "ANCHORING exit_code command",
	} {
		for _, tool := range All() {
			a := tool.Spec.GetAnnotations()
			got := strings.Join(append([]string{strings.TrimPrefix(a.GetDurability().String(), "DURABILITY_")}, a.GetPreservedFields()...), " ")
			if tool.Spec.GetName() == name && got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	}
}
