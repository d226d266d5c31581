package event

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// ServerState reports that a server of tools is in another state.
func ServerState(s *harnessv1.ServerState) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ServerState{ServerState: s}}
}

// ToolsChanged reports that a server has other tools than before.
func ToolsChanged(c *harnessv1.ToolsChanged) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolsChanged{ToolsChanged: c}}
}
