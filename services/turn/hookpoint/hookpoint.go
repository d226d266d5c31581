// Package hookpoint makes the points at which a turn calls subscribers. A key distinguishes a point
// from the others of its turn, and stays the same when a worker repeats the turn, so that a
// subscriber is not called twice. Nothing here fails.
package hookpoint

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Topics that a turn fires.
const (
	BeforeStep = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP
	AfterStep  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP
	BeforeCall = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
	AfterCall  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	OnError    = harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR
)

// Subscribed reports whether one of the topics has subscribers in a run.
func Subscribed(s runstate.DefinitionFields, d *agent.Definition, topics ...harnessv1.HookTopic) bool {
	return s.GetConfig().GetHooks().GetEnabled() && d.Hooks.Any(topics...)
}

// New returns the point of a topic in a turn, without its run. key distinguishes it from other
// points of the turn. It changes payload.
func New(s *harnessv1.Snapshot, turn uint32, topic harnessv1.HookTopic, key, tool string, payload map[string]any) hook.Point {
	return hook.Point{
		Topic: topic, Turn: turn, Tool: tool,
		Key:     fmt.Sprintf("%d.%d.%d/%s", turn, s.GetMessageCount(), s.GetParkVersion(), key),
		Payload: runstate.HookPayload(s, payload),
	}
}
