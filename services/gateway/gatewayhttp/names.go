package gatewayhttp

import (
	"bytes"
	"maps"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// seedNames are the names of events in the designs that the project grew out of.
// docs/events.md lists them; an event without one keeps its name.
var seedNames = map[string]string{
	"session.start":        "harness_started",
	"session.complete":     "harness_completed",
	"step.start":           "turn_started",
	"step.end":             "turn_completed",
	"continuation.prompt":  "continuation_prompt",
	"stall.detected":       "stall_detected",
	"work_item.changed":    "work_item_changed",
	"deliverables.updated": "deliverables_updated",
	"context.pressure":     "context_pressure",
	"compaction.started":   "compaction_started",
	"compaction.completed": "compaction_completed",
	"run.interrupted":      "interrupted",

	"quality.complexity":    "harness_complexity",
	"quality.plan_selected": "harness_plan_selected",
	"quality.alert":         "harness_stream_alert",
	"quality.contract":      "harness_contract",
	"quality.verified":      "harness_verifier",
	"quality.retry":         "harness_retry",
	"quality.degraded":      "harness_degraded",
	"quality.iterated":      "harness_iteration_complete",
	"quality.profile":       "harness_workspace_profile",
	"quality.milestone":     "milestone_unlocked",
	"context.metrics":       "context_metrics",
	"subtask.started":       "harness_subtask_start",
	"subtask.completed":     "harness_subtask_done",
	"swarm.activated":       "harness_swarm_activated",
	"swarm.completed":       "harness_swarm_complete",
}

// eventLine returns the name of an event and its line, whose first field is the name.
func eventLine(e *harnessv1.Event, seed bool) (name string, line []byte, err error) {
	line, err = eventjson.Event(e)
	name = eventjson.Type(e)
	if state := swarmProgress(e); err == nil && seed && state != "" {
		line = bytes.Replace(line, []byte(`"type":"`+name+`"`), []byte(`"type":"`+toolSandbox+`","tool_name":"synthesis_swarm","state":"`+state+`"`), 1)
		return toolSandbox, line, nil
	}
	if other := seedName(name, e); err == nil && seed && other != "" {
		line = bytes.Replace(line, []byte(`"type":"`+name+`"`), []byte(`"type":"`+other+`"`), 1)
		name = other
	}
	return name, line, err
}

// toolSandbox is the seed's name of the progress of a swarm.
const toolSandbox = "tool_sandbox"

// swarmProgress returns what a sub-agent of a swarm does: started or ended; empty if the event is of
// something else.
func swarmProgress(e *harnessv1.Event) string {
	switch {
	case tree.IsSwarmCall(e.GetAgentStarted().GetCallId()):
		return "started"
	case tree.IsSwarmCall(e.GetAgentEnded().GetCallId()):
		return "ended"
	}
	return ""
}

// seedName returns the seed's name of an event; empty if it has none. A score has that of its
// type.
func seedName(name string, e *harnessv1.Event) string {
	if s := e.GetQualityScored(); s != nil && s.GetType() != "" {
		return "harness_" + s.GetType()
	}
	return seedNames[name]
}

// SeedNames returns the names that ?names=seed replaces event names with.
func SeedNames() map[string]string { return maps.Clone(seedNames) }
