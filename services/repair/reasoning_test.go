package repair_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestReasoningModelsMayBeSilentLonger: unless the spec says otherwise.
func TestReasoningModelsMayBeSilentLonger(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*harnessv1.RunSpec)
		want   time.Duration
	}{
		"unknown model": {func(*harnessv1.RunSpec) {}, 120 * time.Second},
		"known to reason": {func(s *harnessv1.RunSpec) {
			s.Agent.Model = "anthropic:claude-opus-5-5"
		}, 300 * time.Second},
		"an effort": {func(s *harnessv1.RunSpec) {
			s.Agent.Reasoning = &harnessv1.ReasoningConfig{Effort: harnessv1.Effort_EFFORT_LOW}
		}, 300 * time.Second},
		"no reasoning": {func(s *harnessv1.RunSpec) {
			s.Agent.Reasoning = &harnessv1.ReasoningConfig{Effort: harnessv1.Effort_EFFORT_NONE}
		}, 120 * time.Second},
		"set": {func(s *harnessv1.RunSpec) {
			s.Agent.Model = "anthropic:claude-opus-5-5"
			s.Config = &harnessv1.LoopConfig{Model: &harnessv1.ModelConfig{IdleTimeout: durationpb.New(time.Second)}}
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec()
			c.change(s)
			state := decide(t, first(begun(), s, nothing()...)).GetStep().GetSnapshot()
			if got := state.GetConfig().GetModel().GetIdleTimeout().AsDuration(); got != c.want {
				t.Errorf("the idle timeout is %s, want %s", got, c.want)
			}
			if !proto.Equal(state.GetReasoning(), s.GetAgent().GetReasoning()) {
				t.Errorf("the state has %v", state.GetReasoning())
			}
		})
	}
}
