package sim

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// effect records the effect of a call. An operation that must not be repeated runs
// once, whatever its call ids.
func (w *World) effect(run string, c *call) {
	if c.idempotent || c.operation == "" {
		return
	}
	key := run + " " + c.operation
	if w.effects == nil {
		w.effects = map[string]string{}
	}
	if before, has := w.effects[key]; has {
		w.broken("no effect twice", fmt.Sprintf("%s: operation %s ran as call %s and now as call %s", run, c.operation, before, c.id))
	}
	w.effects[key] = c.id
}

// checkRequest returns the fault of a request to a model, empty for none: the result of each
// call must directly follow it.
func (w *World) checkRequest(run string, r *model.Request) string {
	var open []string
	for i, m := range r.Messages {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			if len(open) == 0 || open[0] != m.GetToolCallId() {
				return fmt.Sprintf("%s: request message %d answers %s, and %v are open", run, i, m.GetToolCallId(), open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("%s: request message %d comes before the results of %v", run, i, open)
		}
		for _, c := range m.GetToolCalls() {
			open = append(open, c.GetId())
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("%s: the request ends without the results of %v", run, open)
	}
	if again := conversation.View(r.Messages); len(again) != len(r.Messages) {
		return fmt.Sprintf("%s: arranged again, the request has %d messages instead of %d", run, len(again), len(r.Messages))
	}
	return ""
}
