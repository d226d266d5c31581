package runspec

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Budgets returns the budgets that flags set; nil if none does.
func Budgets(turns, toolCalls *uint32, tokens *uint64, cost *float64, runs *uint32, timeout *console.Duration) *harnessv1.Budgets {
	b := &harnessv1.Budgets{Turns: turns, ToolCalls: toolCalls, Tokens: tokens, CostUsd: cost, Runs: runs}
	if timeout != nil {
		b.WallClock = durationpb.New(timeout.D)
	}
	if turns == nil && toolCalls == nil && tokens == nil && cost == nil && runs == nil && timeout == nil {
		return nil
	}
	return b
}
