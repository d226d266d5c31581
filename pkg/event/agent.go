package event

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// AgentStarted reports that a call started a run.
func AgentStarted(c *harnessv1.Child) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_AgentStarted{AgentStarted: &harnessv1.AgentStarted{
		CallId: c.GetCallId(), RunId: c.GetRunId(), Agent: c.GetAgent(),
	}}}
}

// AgentEnded reports that the run that a call started has ended, by its newest report.
func AgentEnded(c *harnessv1.Child) *harnessv1.Event {
	r := c.GetReport()
	return &harnessv1.Event{Event: &harnessv1.Event_AgentEnded{AgentEnded: &harnessv1.AgentEnded{
		CallId: c.GetCallId(), RunId: c.GetRunId(), Agent: c.GetAgent(), Status: r.GetStatus(), Reason: proto.CloneOf(r.GetReason()),
		Accepted: r.GetAccepted(), Turns: r.GetTurns(), Usage: proto.CloneOf(r.GetUsage()),
	}}}
}
