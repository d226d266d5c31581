package gateway

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Bounds of the settings of a model's window and of its compaction.
const (
	// MaxRecentMessages bounds the newest messages that the ladder leaves alone.
	MaxRecentMessages = 1000
	// MaxRecentShare bounds the share of the window that these may hold.
	MaxRecentShare = 0.6
	// maxDurability bounds the tools whose durability is set.
	maxDurability = 128
	// MaxPreserved bounds the preserved fields of a tool.
	MaxPreserved = 8
	// MinSummaryWait and MaxSummaryWait bound the wait for a summary.
	MinSummaryWait, MaxSummaryWait = time.Second, time.Hour
)

const contextField = "spec.config.context."

// checkContext refuses settings of the window that contradict each other.
func checkContext(c *harnessv1.ContextConfig) error {
	if c == nil {
		return nil
	}
	return input.First(
		func() error {
			return input.CheckPositive(contextField+"max_input_tokens", c.MaxInputTokens == nil, c.GetMaxInputTokens())
		},
		func() error { return checkThresholds(c) },
		func() error { return checkKeptFree(c) },
		func() error { return checkRecent(c) },
		func() error { return checkStrategies(c.GetStrategies()) },
		func() error {
			return input.CheckPositive(contextField+"clear_tokens", c.ClearTokens == nil, c.GetClearTokens())
		},
		func() error {
			return input.CheckPositive(contextField+"externalize_tokens", c.ExternalizeTokens == nil, c.GetExternalizeTokens())
		},
		func() error { return checkDurability(c.GetDurability()) },
		func() error { return checkSummarizer(contextField+"summarizer.model", c.GetSummarizer().GetModel()) },
		func() error { return checkSummaryWait(c.GetSummaryWait()) },
	)
}

// checkThresholds holds 0 < target < soft_threshold ≤ blocking_threshold ≤ 1. It blames a
// field that the request sets.
func checkThresholds(c *harnessv1.ContextConfig) error {
	resolved := runstate.Resolve(&harnessv1.LoopConfig{Context: c}, 0).GetContext()
	target, soft, blocking := resolved.GetTarget(), resolved.GetSoftThreshold(), resolved.GetBlockingThreshold()
	compacts := resolved.GetCompaction() || c.Target != nil
	switch {
	case !(soft > 0 && soft <= 1): // also refuses NaN
		return fault.Invalid(contextField+"soft_threshold", "%v: must be in (0, 1]", soft)
	case !(blocking > 0 && blocking <= 1):
		return fault.Invalid(contextField+"blocking_threshold", "%v: must be in (0, 1]", blocking)
	case !(target > 0 && target < 1):
		return fault.Invalid(contextField+"target", "%v: must be in (0, 1)", target)
	case soft > blocking && c.SoftThreshold == nil:
		return fault.Invalid(contextField+"blocking_threshold", "%v: must be at least soft_threshold, which is %v", blocking, soft)
	case soft > blocking:
		return fault.Invalid(contextField+"soft_threshold", "%v: must be at most blocking_threshold, which is %v", soft, blocking)
	case compacts && target >= soft && c.Target == nil:
		return fault.Invalid(contextField+"soft_threshold", "%v: must be greater than target, which is %v: set target below it", soft, target)
	case compacts && target >= soft:
		return fault.Invalid(contextField+"target", "%v: must be less than soft_threshold, which is %v", target, soft)
	}
	return nil
}

// checkKeptFree refuses to keep the whole window free. Defaults are not blamed.
func checkKeptFree(c *harnessv1.ContextConfig) error {
	if c.MaxInputTokens == nil {
		return nil
	}
	limit, buffer, reserve := uint64(c.GetMaxInputTokens()), uint64(c.GetSafetyBuffer()), uint64(c.GetRehydrationReserve())
	switch {
	case buffer >= limit:
		return fault.Invalid(contextField+"safety_buffer", "%d: must be less than max_input_tokens, which is %d", buffer, limit)
	case buffer+reserve >= limit:
		return fault.Invalid(contextField+"rehydration_reserve", "%d: with safety_buffer, which is %d, must be less than max_input_tokens, which is %d", reserve, buffer, limit)
	}
	return nil
}

func checkRecent(c *harnessv1.ContextConfig) error {
	if n := c.GetRecentMessages(); n > MaxRecentMessages {
		return fault.Invalid(contextField+"recent_messages", "%d: must be at most %d", n, MaxRecentMessages)
	}
	if share := c.GetRecentShare(); c.RecentShare != nil && !(share > 0 && share <= MaxRecentShare) {
		return fault.Invalid(contextField+"recent_share", "%v: must be in (0, %v]", share, MaxRecentShare)
	}
	return nil
}

// ladder has the strategies that can be configured.
var ladder = []harnessv1.CompactionAction{
	harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE,
	harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE, harnessv1.CompactionAction_COMPACTION_ACTION_DROP,
}

// IsSettable reports whether a value of an enum can be set in a field of a request: not every
// action of compaction is a strategy.
func IsSettable(f protoreflect.FieldDescriptor, value protoreflect.EnumNumber) bool {
	return value != 0 && (f.FullName() != "harness.v1.ContextConfig.strategies" || slices.Contains(ladder, harnessv1.CompactionAction(value)))
}

func checkStrategies(strategies []harnessv1.CompactionAction) error {
	for i, s := range strategies {
		field := input.At(contextField+"strategies", i)
		name := strings.TrimPrefix(s.String(), "COMPACTION_ACTION_")
		switch {
		case !slices.Contains(ladder, s):
			return fault.Invalid(field, "%s: must be CLEAR, EXTERNALIZE, SUMMARIZE or DROP", name)
		case slices.Contains(strategies[:i], s):
			return fault.Invalid(field, "duplicate strategy %s", name)
		}
	}
	return nil
}

func checkDurability(tools []*harnessv1.ToolDurability) error {
	const list = contextField + "durability"
	if n := len(tools); n > maxDurability {
		return input.TooLarge(list, n, maxDurability, "tools")
	}
	seen := map[string]bool{}
	for i, t := range tools {
		field, name := input.At(list, i), t.GetTool()
		_, known := harnessv1.Durability_name[int32(t.GetDurability())]
		switch {
		case !runlog.Name.MatchString(name):
			return fault.Invalid(field+".tool", "%q is no tool name, which must match [A-Za-z0-9_-]{1,64}", content.Cut(name, 80))
		case seen[name]:
			return fault.Invalid(field+".tool", "duplicate tool %q", name)
		case !known || t.GetDurability() == harnessv1.Durability_DURABILITY_UNSPECIFIED:
			return fault.Invalid(field+".durability", "must be EPHEMERAL, REPLAYABLE, ANCHORING or NON_REPLAYABLE")
		case len(t.GetPreservedFields()) > MaxPreserved:
			return input.TooLarge(field+".preserved_fields", len(t.GetPreservedFields()), MaxPreserved, "fields")
		}
		seen[name] = true
		for j, preserved := range t.GetPreservedFields() {
			if preserved == "" {
				return fault.Invalid(input.At(field+".preserved_fields", j), "must not be empty")
			}
			if err := input.CheckSize(input.At(field+".preserved_fields", j), preserved, input.MaxID); err != nil {
				return err
			}
		}
		if err := input.CheckPositive(field+".externalize_tokens", t.ExternalizeTokens == nil, t.GetExternalizeTokens()); err != nil {
			return err
		}
	}
	return nil
}

// checkSummarizer accepts the empty name, which is the run's model, a model, and a custom
// service at an address.
func checkSummarizer(field, model string) error {
	if target, custom := strings.CutPrefix(model, CustomSummarizer); custom {
		if !isTarget(target) {
			return fault.Invalid(field, "%q: must be PROVIDER:NAME or grpc:HOST:PORT", content.Cut(model, 80))
		}
		return nil
	}
	return input.CheckModel(field, model)
}

// CustomSummarizer begins the name of a summariser that is a custom service.
const CustomSummarizer = "grpc:"

func checkSummaryWait(d *durationpb.Duration) error {
	const field = contextField + "summary_wait"
	if err := input.CheckDuration(field, d); err != nil || d == nil {
		return err
	}
	if wait := d.AsDuration(); wait < MinSummaryWait || wait > MaxSummaryWait {
		return fault.Invalid(field, "%v: must be from %v to %v", wait, MinSummaryWait, MaxSummaryWait)
	}
	return nil
}
