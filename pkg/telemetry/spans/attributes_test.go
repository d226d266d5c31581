package spans

import (
	"fmt"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestUsageHasTheFiguresThatAreReported(t *testing.T) {
	for want, u := range map[string]*harnessv1.Usage{
		"gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0": nil,
		"gen_ai.usage.input_tokens=900 gen_ai.usage.output_tokens=20 gen_ai.usage.cache_read.input_tokens=300 " +
			"gen_ai.usage.cache_creation.input_tokens=40 gen_ai.usage.reasoning.output_tokens=12 harness.cost_micro_usd=7": {
			InputTokens: 900, OutputTokens: 20, CachedInputTokens: 300, CacheWriteTokens: 40, ReasoningTokens: 12, CostMicroUsd: 7,
		},
	} {
		got := ""
		for i, a := range Usage(u) {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%s=%d", a.Key, a.Value.AsInt64())
		}
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
