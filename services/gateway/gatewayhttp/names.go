package gatewayhttp

import (
	"bytes"
	"maps"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
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
}

// eventLine returns the name of an event and its line, whose first field is the name.
func eventLine(e *harnessv1.Event, seed bool) (name string, line []byte, err error) {
	line, err = eventjson.Event(e)
	name = eventjson.Type(e)
	if other := seedNames[name]; err == nil && seed && other != "" {
		line = bytes.Replace(line, []byte(`"type":"`+name+`"`), []byte(`"type":"`+other+`"`), 1)
		name = other
	}
	return name, line, err
}

// SeedNames returns the names that ?names=seed replaces event names with.
func SeedNames() map[string]string { return maps.Clone(seedNames) }

// Routes returns the operations of a handler as METHOD PATH, with the parameters of the
// path in braces.
func Routes() []string {
	var names []string
	for _, r := range routes {
		names = append(names, r.method+" "+strings.Replace(r.path, "{$}", "", 1))
	}
	return names
}
