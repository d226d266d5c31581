package tools

import (
	"slices"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
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
	want := []string{ReadFile, WriteFile, EditFile, ListDirectory, FindFiles, SearchFiles, RunCommand, CountWords}
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
