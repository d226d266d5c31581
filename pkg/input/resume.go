package input

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// checkResume validates a resume by itself.
func checkResume(r *harnessv1.Resume) error {
	if err := CheckBudgets("budgets", r.GetBudgets()); err != nil {
		return err
	}
	return CheckModel("model", r.GetModel())
}

// resume is stored for a run that is parked or about to park, and for one that can be resumed after its end. noApprovals: the sender may not
// approve calls.
func (s State) resume(r *harnessv1.Resume, noApprovals bool) (Admission, error) {
	if noApprovals && reviews(s.Step.GetSnapshot()) {
		return 0, fault.New(codes.PermissionDenied, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
			"a resume approves the calls of "+s.Run.String()+" that wait for a review, and the token has no right \"approve\": ask for one whose line has may=approve",
			"namespace", s.Run.Namespace, "run_id", s.Run.ID, "right", "approve")
	}
	resumable := s.at(runlog.End) && runstate.Resumable(s.Step.GetSnapshot(), r.GetModel() != "")
	if short := runstate.InsufficientBudget(s.Step.GetSnapshot(), r.GetBudgets(), s.Now); short != nil && !s.at(runlog.End) {
		return 0, fault.Invalid("budgets."+runstate.BudgetField(short.GetBudget()), "%.6g is not above the %.6g that are used", short.GetLimit(), short.GetUsed())
	}
	if err := s.checkPrices(r); err != nil {
		return 0, err
	}
	switch {
	case s.at(runlog.End) && s.waits(isUserMessage) && r.GetModel() == "":
		return Unneeded, nil // the message will reopen it
	case s.at(runlog.Park), resumable:
		return Store, s.room()
	case s.at(runlog.End):
		return 0, s.ended("send a message instead")
	case s.waking(), s.waits(isInterrupt), s.waits(isCancel):
		return Store, s.room() // running, but about to park or just woken
	case proto.Size(r.GetBudgets()) > 0, r.GetModel() != "":
		return Store, s.room() // repair processes them before the next turn
	}
	return Unneeded, nil
}

// RecheckResume returns why the run refuses a resume at now. noApprovals: the sender may not approve calls.
func RecheckResume(s *harnessv1.Snapshot, r *harnessv1.Resume, noApprovals bool, now time.Time) (refusal string) {
	switch {
	case runstate.Ended(s) && runstate.Resumable(s, r.GetModel() != ""):
		return ""
	case runstate.Ended(s):
		return "the run has ended; a message reopens it"
	case noApprovals && reviews(s):
		return "a call waits for a review, and the caller may not approve calls"
	}
	if short := runstate.InsufficientBudget(s, r.GetBudgets(), now); short != nil {
		return fmt.Sprintf("a budget of %.6g %s is not above the %.6g that are used", short.GetLimit(), short.GetBudget(), short.GetUsed())
	}
	return ""
}

// reviews reports whether a call waits for a review. A resume approves it.
func reviews(s runstate.SharedFields) bool {
	return slices.ContainsFunc(runstate.AwaitedCalls(s), func(c *harnessv1.PendingCall) bool { return c.GetKind() == runstate.KindReview })
}

// checkPrices refuses a resume with a budget in US dollars, or with another model, if the
// budget would not count.
func (s State) checkPrices(r *harnessv1.Resume) error {
	snapshot, b := s.Step.GetSnapshot(), r.GetBudgets()
	if s.Priced == nil || b.GetCostUsd() == 0 && r.GetModel() == "" {
		return nil
	}
	models := append([]string{cmp.Or(r.GetModel(), snapshot.GetModel())}, snapshot.GetFallbackModels()...)
	return CheckPrices("budgets", runstate.BudgetsWith(snapshot, b), models, s.Priced)
}

// CheckBudgets validates budgets; nil is valid.
func CheckBudgets(field string, b *harnessv1.Budgets) error {
	if b == nil {
		return nil
	}
	return First(
		func() error { return CheckPositive(field+".turns", b.Turns == nil, b.GetTurns()) },
		func() error { return CheckPositive(field+".tool_calls", b.ToolCalls == nil, b.GetToolCalls()) },
		func() error { return CheckDuration(field+".wall_clock", b.GetWallClock()) },
		func() error { return CheckPositive(field+".tokens", b.Tokens == nil, b.GetTokens()) },
		func() error {
			if cost := b.GetCostUsd(); b.CostUsd != nil && !(cost > 0 && cost <= math.MaxFloat64) {
				return fault.Invalid(field+".cost_usd", "%v: must be greater than 0", cost)
			}
			return nil
		},
	)
}

// CheckPrices refuses budgets with a cost for models of which one has no price.
func CheckPrices(field string, b *harnessv1.Budgets, models []string, priced func(model string) bool) error {
	if b.GetCostUsd() == 0 || b.GetAllowUnpriced() {
		return nil
	}
	for _, m := range models {
		if m == "" || priced(m) {
			continue
		}
		return fault.Invalid(field+".cost_usd",
			"the price of the model %q is not known, so what it costs would not count: add its prices to a catalogue (--catalogue FILE), leave cost_usd out, or set allow_unpriced: true",
			content.Cut(m, 80))
	}
	return nil
}
