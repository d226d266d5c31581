package workflow_test

import (
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// TestNamesNeverChange: they are part of stored subjects and records.
func TestNamesNeverChange(t *testing.T) {
	if got := workflow.Default(); !slices.Equal(got, []string{"repair", "compaction", "turn", "stopdecision"}) {
		t.Errorf("the default cycle is %q", got)
	}
	if got := workflow.Roles(); !slices.Equal(got, []string{"toolhost", "inference", "repair", "compaction", "turn", "stopdecision", "gateway"}) {
		t.Errorf("the roles are %q", got)
	}
}

func TestDefaultIsACopy(t *testing.T) {
	workflow.Default()[0] = "x"
	workflow.Roles()[0] = "x"
	if workflow.Default()[0] != workflow.Repair || workflow.Roles()[0] != workflow.ToolHost {
		t.Error("a caller can change the names")
	}
}

func TestNextExecutor(t *testing.T) {
	custom := []string{"repair", "turn", "quality", "stopdecision"}
	for _, c := range []struct {
		cycle      []string
		name, want string
	}{
		{nil, "repair", "compaction"}, {nil, "stopdecision", "repair"}, {nil, "quality", "repair"},
		{custom, "repair", "turn"}, {custom, "turn", "quality"}, {custom, "stopdecision", "repair"}, {custom, "compaction", "repair"},
	} {
		if got := workflow.Next(c.cycle, c.name); got != c.want {
			t.Errorf("%s follows %s in %q, want %s", got, c.name, c.cycle, c.want)
		}
	}
	if got := workflow.Of(custom); !slices.Equal(got, custom) {
		t.Errorf("got %q", got)
	}
}

func TestRolesAreReserved(t *testing.T) {
	for _, name := range append(workflow.Roles(), workflow.Inference, workflow.Bridge, workflow.AllRoles) {
		if !workflow.IsRole(name) {
			t.Errorf("%s is no role", name)
		}
	}
	if workflow.IsRole("quality") {
		t.Error("quality is a role")
	}
}
