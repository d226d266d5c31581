package node

import (
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestRoleTableHasEveryRole: the table starts exactly the roles that a process can be
// given, the tool host before and the gateway after all others.
func TestRoleTableHasEveryRole(t *testing.T) {
	var names []string
	for _, spec := range roleSpecs {
		names = append(names, spec.name)
	}
	want := append(workflow.Roles(), workflow.Bridge)
	if !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the table has %q, want %q", names, want)
	}
	if names[0] != workflow.ToolHost || names[len(names)-1] != workflow.Gateway {
		t.Errorf("the roles start in the order %q", names)
	}
}
