package runstate

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Compacts reports whether the window of a run is compacted: compaction is switched on and
// its executor is in the run's cycle.
func Compacts(s DefinitionFields) bool {
	return s.GetConfig().GetContext().GetCompaction() && slices.Contains(workflow.Of(s.GetWorkflow()), workflow.Compaction)
}

// MayCompact reports whether a request that a model refuses as too long leads to a
// compaction and another try: the run compacts its window, and the model did not refuse the
// request before as well.
func MayCompact(s *harnessv1.Snapshot) bool {
	return Compacts(s) && s.GetTokenBudget().GetRefusals() == 0
}

// OwnBudget returns the token budget of s for the caller to change.
func OwnBudget(s *harnessv1.Snapshot) *harnessv1.TokenBudget {
	if s.TokenBudget == nil {
		s.TokenBudget = &harnessv1.TokenBudget{}
	}
	return s.TokenBudget
}

// RecordRefusal records that a model refused the request with all messages of s as too
// long, and the sizes that the refusal names. toolTokens is the estimated weight of the tools of the
// request. It changes s.
func RecordRefusal(s *harnessv1.Snapshot, r *harnessv1.ModelRetried, toolTokens uint32) {
	b := OwnBudget(s)
	b.Exceeded, b.ToolTokens = true, toolTokens
	b.Refusals++
	window, another := r.GetWindowTokens(), b.GetFactorModel() != r.GetModel()
	switch {
	case window > 0 && another:
		b.FactorModel, b.Factor, b.WindowTokens = r.GetModel(), 0, window
	case window > 0:
		b.WindowTokens = window
	case another && b.GetFactorModel() != s.GetModel():
		b.WindowTokens = 0 // of a fallback model that has not refused this request
	}
	if prompt := r.GetPromptTokens(); prompt > 0 {
		b.ReportedTokens, b.ReportedMessages, b.UnreportedBytes, b.FreedTokens = prompt, s.GetMessageCount(), 0, 0
	}
}
