package openai

import (
	"encoding/json"
	"maps"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// The members of a request that set the effort.
const (
	memberEffort   = "reasoning_effort"
	memberObject   = "reasoning"
	memberThinking = "thinking"
	memberSwitch   = "enable_thinking"
)

// effortNames are the efforts in the words of the services.
var effortNames = map[harnessv1.Effort]string{
	harnessv1.Effort_EFFORT_NONE: "none", harnessv1.Effort_EFFORT_MINIMAL: "minimal", harnessv1.Effort_EFFORT_LOW: "low",
	harnessv1.Effort_EFFORT_MEDIUM: "medium", harnessv1.Effort_EFFORT_HIGH: "high", harnessv1.Effort_EFFORT_XHIGH: "xhigh",
	harnessv1.Effort_EFFORT_MAX: "max",
}

// settings writes the members after the stream: the effort, the key of the cache, and
// the additional members in the order of their names.
func (c *Config) settings(b *body, req *model.Request, name string) {
	var set object
	if !req.Leaves(memberEffort) {
		set = c.effort(req.Effort, name)
	}
	for _, m := range set {
		b.raw(m.name, m.value)
	}
	if c.CacheKey && req.CacheKey != "" && !req.Leaves(memberCacheKey) {
		b.member(memberCacheKey, req.CacheKey)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Body)) {
		if set.value(name) == nil {
			b.raw(name, c.Body[name])
		}
	}
}

// effort returns the members that set an effort for a model; none for an unspecified one.
// An object is the one of Body with the effort in it.
func (c *Config) effort(want harnessv1.Effort, name string) object {
	if c.Efforts != nil {
		want = model.NearestEffort(c.Efforts(name), want)
	}
	effort := effortNames[want]
	if effort == "" {
		return nil
	}
	quoted := json.RawMessage(`"` + effort + `"`)
	off := want == harnessv1.Effort_EFFORT_NONE
	switch c.Effort {
	case EffortField:
		return object{{memberEffort, quoted}}
	case EffortObject:
		return object{{memberObject, c.with(memberObject, "effort", quoted)}}
	case EffortThinking:
		if off {
			return object{{memberThinking, json.RawMessage(`{"type":"disabled"}`)}}
		}
		return object{{memberThinking, c.with(memberThinking, "type", json.RawMessage(`"enabled"`))}, {memberEffort, quoted}}
	case EffortSwitch:
		if off {
			return object{{memberSwitch, json.RawMessage("false")}}
		}
		return object{{memberSwitch, json.RawMessage("true")}, {memberEffort, quoted}}
	case EffortNone:
	}
	return nil
}

// with returns the object of a member of Body with one of its members set.
func (c *Config) with(name, member string, value json.RawMessage) json.RawMessage {
	have, _ := parseObject(c.Body[name])
	return have.set(member, value).json()
}
