package runstate_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestSubAgentsAreNoNewsByTheirPrompts: an agent that gives sub-agents one task after the other in other numbers makes no progress,
// whether these may write or not.
func TestSubAgentsAreNoNewsByTheirPrompts(t *testing.T) {
	for _, writes := range []bool{false, true} {
		call := &harnessv1.PendingCall{Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT, Writes: writes, Reads: !writes, Explores: !writes}
		if basis := runstate.BasisOf("task", call); basis != progress.ByPlace {
			t.Errorf("writes %v: basis %v", writes, basis)
		}
	}
}
