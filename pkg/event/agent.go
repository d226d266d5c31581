package event

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// AgentStarted reports that a call started a run, or continued one that had ended.
func AgentStarted(c *harnessv1.Child) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_AgentStarted{AgentStarted: &harnessv1.AgentStarted{
		CallId: callOf(c), RunId: c.GetRunId(), Agent: c.GetAgent(), Background: c.GetBackground(), Continued: c.GetContinuedBy() != "", AfterVersion: c.GetReport().GetVersion(),
	}}}
}

// AgentWaiting reports that the run that a call started is parked and does not continue by itself, by its newest report.
func AgentWaiting(c *harnessv1.Child) *harnessv1.Event {
	r := c.GetReport()
	return &harnessv1.Event{Event: &harnessv1.Event_AgentWaiting{AgentWaiting: &harnessv1.AgentWaiting{
		CallId: callOf(c), RunId: c.GetRunId(), Agent: c.GetAgent(), Reason: proto.CloneOf(r.GetReason()), ChildVersion: r.GetVersion(),
	}}}
}

// AgentEnded reports that the run that a call started has ended, by its newest report.
func AgentEnded(c *harnessv1.Child) *harnessv1.Event {
	r := c.GetReport()
	return &harnessv1.Event{Event: &harnessv1.Event_AgentEnded{AgentEnded: &harnessv1.AgentEnded{
		CallId: callOf(c), RunId: c.GetRunId(), Agent: c.GetAgent(), Status: r.GetStatus(), Reason: proto.CloneOf(r.GetReason()),
		Accepted: r.GetAccepted(), Turns: r.GetTurns(), Usage: proto.CloneOf(r.GetUsage()), ChildVersion: r.GetVersion(),
	}}}
}

// callOf returns the call that a child works for.
func callOf(c *harnessv1.Child) string { return cmp.Or(c.GetContinuedBy(), c.GetCallId()) }

// SubtaskStarted reports that a layer of a graph started.
func SubtaskStarted(started *harnessv1.SubtaskStarted) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SubtaskStarted{SubtaskStarted: started}}
}

// SwarmActivated reports that specialists work on the sources of the task.
func SwarmActivated(activated *harnessv1.SwarmActivated) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SwarmActivated{SwarmActivated: activated}}
}

// SwarmCompleted reports how a swarm ended.
func SwarmCompleted(completed *harnessv1.SwarmCompleted) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SwarmCompleted{SwarmCompleted: completed}}
}

// SubtaskCompleted reports that a layer of a graph ended.
func SubtaskCompleted(completed *harnessv1.SubtaskCompleted) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_SubtaskCompleted{SubtaskCompleted: completed}}
}
