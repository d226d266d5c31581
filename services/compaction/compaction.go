// Package compaction decides how full the model's window is before a turn and,
// in a later part, what to leave out of the next request.
//
// The estimate is the provider's own report of the last request plus what was
// appended since. Bytes bound tokens from above, so the exact count, which
// costs more than the rest of a turn, is asked for (KeyTokens) only once the
// bound reaches a threshold.
package compaction

import (
	"errors"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.Compaction

// KeyTokens asks for the exact tokens of what the provider has not reported:
// every message behind token_budget.reported_messages, with 4 tokens each.
const KeyTokens = "tokens"

// framing is the number of tokens that frame one message.
const framing = 4

// bytesPerToken is the usual ratio, for the gauge while nothing is at stake.
const bytesPerToken = 4

// Decide maps a step with a RepairComplete to its outcome, or to what it has to
// know first.
func Decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	repaired := in.GetStep().GetRepairComplete()
	if repaired == nil {
		return nil, errors.New("compaction: the step holds no RepairComplete")
	}
	if in.GetStep().GetSnapshot() == nil {
		return nil, errors.New("compaction: the step holds no snapshot")
	}
	s := runstate.Clone(in.GetStep().GetSnapshot())
	if s.TokenBudget == nil {
		s.TokenBudget = &harnessv1.TokenBudget{}
	}
	b := s.TokenBudget
	limits(b, s.GetConfig().GetContext())

	before := b.GetUsedTokens()
	known := uint64(b.GetReportedTokens())
	if known == 0 {
		known = uint64(s.GetConfig().GetContext().GetSafetyBuffer())
	}
	framed := framing * (s.GetMessageCount() - min(b.GetReportedMessages(), s.GetMessageCount()))
	bytes := b.GetUnreportedBytes()
	if b.GetReportedTokens() == 0 {
		known += uint64(b.GetToolTokens())
	}
	step := &harnessv1.Step{From: Name, To: workflow.Next(s.GetWorkflow(), Name), Observed: in.GetObserved()}
	switch counted := observedTokens(in.GetObserved()); {
	case counted != nil:
		b.UsedTokens = clamp(known + uint64(*counted))
	case known+framed+bytes >= uint64(b.GetSoftTokens()):
		return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: []string{KeyTokens}}}}, nil
	default:
		b.UsedTokens = clamp(known + framed + bytes/bytesPerToken)
	}
	level, name := pressure(b)
	var events []*harnessv1.Event
	if b.GetUsedTokens() != before {
		events = append(events, runstate.Event(s, s.GetTurnCount(), &harnessv1.Event{Event: &harnessv1.Event_ContextUsage{
			ContextUsage: &harnessv1.ContextUsage{UsedTokens: b.GetUsedTokens(), MaxInputTokens: b.GetMaxInputTokens()},
		}}))
	}
	if name != "" {
		events = append(events, runstate.Event(s, s.GetTurnCount(), &harnessv1.Event{Event: &harnessv1.Event_ContextPressure{
			ContextPressure: &harnessv1.ContextPressure{Level: name, UsedTokens: b.GetUsedTokens(), MaxInputTokens: b.GetMaxInputTokens()},
		}}))
	}
	step.Snapshot = s
	step.Message = &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{Repair: repaired, Pressure: level}}
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{Step: step, Events: events}}}, nil
}

// limits fills in the thresholds: ⌊share · max⌋.
func limits(b *harnessv1.TokenBudget, c *harnessv1.ContextConfig) {
	limit := c.GetMaxInputTokens()
	b.MaxInputTokens = limit
	b.SoftTokens = uint32(c.GetSoftThreshold() * float64(limit))
	b.BlockingTokens = uint32(c.GetBlockingThreshold() * float64(limit))
}

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

func clamp(n uint64) uint32 { return uint32(min(n, 1<<32-1)) } //nolint:gosec // clamped
