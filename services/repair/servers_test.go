package repair_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// TestToolsThatAModelRefusesAreReported: once, and as left out of their server.
func TestToolsThatAModelRefusesAreReported(t *testing.T) {
	s := running()
	s.Definition = &harnessv1.Definition{Mcp: []*harnessv1.McpServer{{Name: "s", Command: "c"}, {Name: "s__t", Command: "c"}}}
	s.ModelAdjustments = []*harnessv1.ModelAdjustment{
		{Model: "m", Adjustment: harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT}, {Model: "m", Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_TOOL, Tool: "mcp__s__t__odd"},
	}
	state := func() *harnessv1.McpState {
		ready := harnessv1.McpServerState_MCP_SERVER_STATE_READY
		return &harnessv1.McpState{Servers: []*harnessv1.McpServerStatus{{Server: "s", State: ready, Tools: 2}, {Server: "s__t", State: ready, Tools: 2}}}
	}
	s.Mcp = state()
	for round, want := range []int{1, 0} {
		o := decide(t, &harnessv1.StepInput{
			Now: timestamppb.New(noon), Sequence: 99,
			Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
				Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE,
			}}},
			Observed: []*harnessv1.Observation{
				{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: &harnessv1.InboxBatch{Cursor: s.GetInboxCursor()}}},
				{Key: repair.NeedMcp, Value: &harnessv1.Observation_Mcp{Mcp: &harnessv1.McpSeen{State: state()}}},
			},
		})
		var changed, states int
		for _, e := range o.GetEvents() {
			if c := e.GetToolsChanged(); c != nil && c.GetServer() == "s__t" && len(c.GetRemoved()) == 1 && c.GetRemoved()[0] == "mcp__s__t__odd" {
				changed++
			}
			if c := e.GetServerState(); c != nil && c.GetServer() == "s__t" && len(c.GetLeftOut()) == 1 && c.GetLeftOut()[0].GetReason() == "the model m refuses its definition" {
				states++
			}
		}
		if changed != want || states != want {
			t.Errorf("turn %d: %d changes, %d states; want %d: %v", round, changed, states, want, o.GetEvents())
		}
		s = o.GetStep().GetSnapshot()
		if s.GetMcp() == nil {
			t.Fatalf("%v", o)
		}
	}
}
