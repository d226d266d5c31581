package repair

import (
	"strconv"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// call calls the hooks of a topic and records their effects. key distinguishes
// the call from others of the topic in the same record.
func (d *decision) call(topic harnessv1.HookTopic, key, tool string, payload map[string]any) (hook.Effects, error) {
	effects, err := d.fire(topic, key, tool, payload)
	if err != nil {
		return effects, err
	}
	d.record(effects)
	return effects, nil
}

// fire calls the hooks of a topic.
func (d *decision) fire(topic harnessv1.HookTopic, key, tool string, payload map[string]any) (hook.Effects, error) {
	if !d.subscribed(topic) {
		return hook.Effects{}, nil
	}
	result, err := agent.Fire(d.made.Hooks, d.in, hook.Point{
		Topic: topic, Turn: d.Turn, Tool: tool, Payload: runstate.HookPayload(d.s, payload),
		Key: strconv.FormatUint(d.in.GetVersion(), 10) + "/" + strconv.FormatUint(uint64(d.s.GetSegment()), 10) + "/" + key,
	})
	return result.Effects(), err
}

// record emits the events of hooks and stores what they want. Their notes are
// appended after all other messages of the record.
func (d *decision) record(effects hook.Effects) {
	d.Emit(effects.Events...)
	d.verdicts += len(effects.Events)
	runstate.RecordWants(d.s, effects.Wants())
	d.notes = append(d.notes, effects.Notes...)
}

// subscribed reports whether hooks are enabled and one subscribes to topic.
func (d *decision) subscribed(topic harnessv1.HookTopic) bool {
	return d.s.GetConfig().GetHooks().GetEnabled() && d.made.Hooks.Any(topic)
}

// text returns the whole text of c. The text of a blob is an observation.
func (d *decision) text(c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	observed := agent.Observation(d.in, NeedText+ref.GetDigest())
	if observed == nil {
		return "", &agent.NeedsError{Keys: []string{NeedText + ref.GetDigest()}}
	}
	return content.Text(observed.GetContext().GetText()), nil
}
