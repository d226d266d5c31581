package judge

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// EndsWork reports whether a call of a tool ends the work.
func EndsWork(tool string) bool {
	t := harnesstool.Find(tool)
	return t != nil && t.Summary != nil
}

// Completion returns the arguments of the first call that ends the work, in a run with an
// output schema; nil if there is none.
func Completion(calls []*harnessv1.PreparedCall) *harnessv1.Completion {
	for _, c := range calls {
		if c.GetCompletion() != nil {
			return c.GetCompletion()
		}
	}
	return nil
}

// Summary returns the summary of a response that ends the work; nil if none of its
// calls does.
func Summary(m *harnessv1.Message, calls []*harnessv1.PreparedCall) *harnessv1.Content {
	for i, c := range calls {
		if c.GetDisposition() != harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS || i >= len(m.GetToolCalls()) {
			continue
		}
		t := harnesstool.Find(c.GetTool())
		if t == nil || t.Summary == nil {
			continue
		}
		if c.GetCompletion() != nil {
			return c.GetCompletion().GetSummary()
		}
		given := m.GetToolCalls()[i].GetArguments()
		if c.GetArguments() != nil {
			given = c.GetArguments()
		}
		return t.Summary(given)
	}
	return nil
}
