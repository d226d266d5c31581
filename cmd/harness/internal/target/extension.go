package target

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// BudgetExceeded is the prefix of park kinds for a budget; the budget follows.
const BudgetExceeded = "budget_exceeded:"

// Extension returns the flags of resume that extend the exhausted budgets, each to twice
// its limit, or twice its use if that is more.
func Extension(ctx context.Context, s *backend.Session, namespace, run string, r *harnessv1.HarnessResult) string {
	which, parked := strings.CutPrefix(r.GetReason().GetKind(), BudgetExceeded)
	if !parked {
		return ""
	}
	if answer, err := s.Client.GetState(ctx, &harnessv1.GetStateRequest{Namespace: namespace, RunId: run}); err == nil {
		if flags := extensions(answer.GetSnapshot()); flags != "" {
			return flags
		}
	}
	return map[string]string{
		"turns": " --max-turns N", "tool_calls": " --max-tool-calls N", "wall_clock": " --timeout D",
		"tokens": " --max-tokens N", "cost": " --max-cost USD", "runs": " --max-runs N",
	}[which]
}

// extensions returns the flags that extend every exhausted budget.
func extensions(s *harnessv1.Snapshot) string {
	s = proto.CloneOf(s)
	var flags strings.Builder
	for range 6 { // the number of budgets
		up := runstate.ExceededBudget(s, time.Time{})
		if up == nil {
			break
		}
		more := 2 * max(up.GetLimit(), up.GetUsed(), 1)
		b := &harnessv1.Budgets{}
		switch up.GetBudget() {
		case "turns":
			n := uint32(min(math.Ceil(more), math.MaxUint32))
			b.Turns = &n
			fmt.Fprintf(&flags, " --max-turns %d", n)
		case "tool_calls":
			n := uint32(min(math.Ceil(more), math.MaxUint32))
			b.ToolCalls = &n
			fmt.Fprintf(&flags, " --max-tool-calls %d", n)
		case "wall_clock":
			d := time.Duration(math.Ceil(more)) * time.Second
			b.WallClock = durationpb.New(d)
			fmt.Fprintf(&flags, " --timeout %s", Brief(d))
		case "tokens":
			n := uint64(math.Ceil(more))
			b.Tokens = &n
			fmt.Fprintf(&flags, " --max-tokens %d", n)
		case "cost":
			usd := max(math.Ceil(200*max(up.GetLimit(), up.GetUsed())), 1) / 100
			b.CostUsd = &usd
			fmt.Fprintf(&flags, " --max-cost %.2f", usd)
		case "runs":
			n := uint32(min(math.Ceil(more), math.MaxUint32))
			b.Runs = &n
			fmt.Fprintf(&flags, " --max-runs %d", n)
		default:
			return flags.String()
		}
		runstate.ExtendBudgets(s, b)
	}
	return flags.String()
}

// Brief formats a duration without trailing zero units.
func Brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
