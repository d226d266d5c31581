// Package compaction decides before a turn how full the model's window is, and applies
// the strategies that make room in it (strategy.go). There is no strategy yet, so no
// request is shortened.
//
// The estimate is what the provider reported for the last request plus what was
// appended since. A text has at most one token a byte, so the decision asks for the
// exact count, which costs more than the rest of a turn, only if the bytes could reach
// the soft threshold (KeyTokens).
package compaction

import (
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.Compaction

// KeyTokens is the key of the exact number of tokens in the messages that the provider
// has not reported: all after token_budget.reported_messages, each with 4 tokens more.
// Images count by the model's formula, documents by their pages.
const KeyTokens = "tokens"

// framing is the number of tokens that frame a message.
const framing = 4

// bytesPerToken is the usual ratio, for the estimate far below the thresholds.
const bytesPerToken = 4

// Decide returns the outcome of a step with a RepairComplete, or the observations that
// it needs first.
func Decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) { return decide(in, strategies) }

func decide(in *harnessv1.StepInput, strategies []strategy) (*harnessv1.StepOutput, error) {
	repaired := in.GetStep().GetRepairComplete()
	if repaired == nil {
		return nil, errors.New("compaction: the step has no repair_complete")
	}
	if in.GetStep().GetSnapshot() == nil {
		return nil, errors.New("compaction: the step has no snapshot")
	}
	s := runstate.Clone(in.GetStep().GetSnapshot())
	if s.TokenBudget == nil {
		s.TokenBudget = &harnessv1.TokenBudget{}
	}
	b := s.TokenBudget
	before := b.GetUsedTokens()
	setThresholds(b, s.GetConfig().GetContext())
	used, ok := estimate(s, observedTokens(in.GetObserved()))
	if !ok {
		return needs(KeyTokens), nil
	}
	b.UsedTokens = used

	d := runstate.NewStep(Name, s, s.GetTurnCount())
	d.Step.To, d.Step.Observed = workflow.Next(s.GetWorkflow(), Name), in.GetObserved()
	if missing := apply(strategies, in, d); len(missing) > 0 {
		return needs(missing...), nil
	}
	level, name := pressure(b)
	if b.GetUsedTokens() != before {
		d.Emit(event.ContextUsage(&harnessv1.ContextUsage{UsedTokens: b.GetUsedTokens(), MaxInputTokens: b.GetMaxInputTokens()}))
	}
	if name != "" {
		d.Emit(event.ContextPressure(name, b.GetUsedTokens(), b.GetMaxInputTokens()))
	}
	d.Step.Message = &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{Repair: repaired, Pressure: level}}
	return d.Output(), nil
}

// needs is the answer of a decision that needs observations first.
func needs(keys ...string) *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: keys}}}
}

// estimate returns the tokens in the window of s. counted is the exact number of those
// that the provider has not reported, nil if they were not counted. ok is false if it
// is nil and the window may be fuller than the soft threshold.
func estimate(s *harnessv1.Snapshot, counted *uint32) (used uint32, ok bool) {
	b := s.GetTokenBudget()
	known := uint64(b.GetReportedTokens())
	if known == 0 { // before the first report
		known = uint64(s.GetConfig().GetContext().GetSafetyBuffer()) + uint64(b.GetToolTokens())
	}
	if counted != nil {
		return clamp(known + uint64(*counted)), true
	}
	framed := framing * (s.GetMessageCount() - min(b.GetReportedMessages(), s.GetMessageCount()))
	bytes := b.GetUnreportedBytes()
	if known+framed+bytes >= uint64(b.GetSoftTokens()) {
		return 0, false
	}
	return clamp(known + framed + bytes/bytesPerToken), true
}

// setThresholds sets the thresholds in tokens: ⌊share · max⌋.
func setThresholds(b *harnessv1.TokenBudget, c *harnessv1.ContextConfig) {
	limit := c.GetMaxInputTokens()
	b.MaxInputTokens = limit
	b.SoftTokens = uint32(c.GetSoftThreshold() * float64(limit))
	b.BlockingTokens = uint32(c.GetBlockingThreshold() * float64(limit))
}

// pressure returns the threshold that the window has reached, and its name in events.
func pressure(b *harnessv1.TokenBudget) (harnessv1.PressureLevel, string) {
	switch {
	case b.GetUsedTokens() >= b.GetBlockingTokens():
		return harnessv1.PressureLevel_PRESSURE_LEVEL_BLOCKING, "blocking"
	case b.GetUsedTokens() >= b.GetSoftTokens():
		return harnessv1.PressureLevel_PRESSURE_LEVEL_SOFT, "soft"
	}
	return harnessv1.PressureLevel_PRESSURE_LEVEL_UNSPECIFIED, ""
}

func observedTokens(all []*harnessv1.Observation) *uint32 {
	for _, o := range all {
		if t, ok := o.GetValue().(*harnessv1.Observation_Tokens); ok && o.GetKey() == KeyTokens {
			return &t.Tokens
		}
	}
	return nil
}

func clamp(n uint64) uint32 { return uint32(min(n, 1<<32-1)) }
