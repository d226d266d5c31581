package quality

import (
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxTools bounds the tools whose results are counted by name; further ones count as "other".
const maxTools = 64

// CountContent adds a result of a tool to the figures of a segment whose work is judged; it does
// nothing without a state. A result in a blob counts its bytes as code points.
func CountContent(q *harnessv1.QualityState, tool string, result *harnessv1.Content) {
	if q == nil {
		return
	}
	if q.Results == nil {
		q.Results = &harnessv1.ToolResultFigures{}
	}
	chars := uint64(utf8.RuneCountInString(result.GetInline())) //nolint:gosec // a length
	if blob := result.GetBlob(); blob != nil {
		chars = blob.GetSize()
	}
	countResult(q.GetResults(), tool, chars)
}

// countResult adds a result of a tool to the figures of a segment. chars is its length in code
// points.
func countResult(f *harnessv1.ToolResultFigures, tool string, chars uint64) {
	f.Calls++
	f.Chars += chars
	if chars > f.GetLargestChars() || f.GetLargestTool() == "" {
		f.LargestTool, f.LargestChars = tool, chars
	}
	if f.ByTool == nil {
		f.ByTool = map[string]uint32{}
	}
	if _, known := f.ByTool[tool]; !known && len(f.ByTool) >= maxTools {
		tool = "other"
	}
	f.ByTool[tool]++
}

// ContextMetrics returns the figures of a segment as its event reports them.
func ContextMetrics(f *harnessv1.ToolResultFigures) *harnessv1.ContextMetrics {
	m := &harnessv1.ContextMetrics{
		TotalToolCalls: f.GetCalls(), CumulativeResultChars: f.GetChars(), EstimatedToolResultTokens: (f.GetChars() + 3) / 4, CallsPerTool: f.GetByTool(),
	}
	if f.GetCalls() > 0 {
		m.LargestResult = &harnessv1.LargestResult{Tool: f.GetLargestTool(), Chars: f.GetLargestChars()}
	}
	return m
}
