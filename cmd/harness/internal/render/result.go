package render

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// StatusName returns a status without its prefix.
func StatusName(s harnessv1.RunStatus) string {
	return strings.TrimPrefix(s.String(), "RUN_STATUS_")
}

// Result prints the last lines: how the run ended, why, and its usage.
func (t *Text) Result(r *harnessv1.HarnessResult) {
	t.endText()
	t.Lines(t.work.flush(t.style)...)
	t.Lines(t.lastErrors(r.GetReason().GetMessage())...)
	t.out.print("\n")
	t.Lines(t.style.ResultLines(r)...)
}

// Lines prints separate lines.
func (t *Text) Lines(lines ...string) {
	for _, line := range lines {
		t.line(line)
	}
}

// ResultLines returns the status of a run, its usage, how much of its contract is met,
// and its deliverables, without its pending calls.
func (s Style) ResultLines(r *harnessv1.HarnessResult) []string {
	status := StatusName(r.GetStatus())
	switch {
	case r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE && r.GetAccepted():
		status = s.good(s.tick() + " " + status)
	case r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE:
		status = s.warn(status + " (not accepted)")
	case r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED:
		status = s.warn(status)
	default:
		status = s.bad(s.cross() + " " + status)
	}
	if message := r.GetReason().GetMessage(); message != "" {
		status += ": " + shorten(message, 300)
	} else if words := ReasonWords(r.GetReason().GetKind()); words != "" {
		status += ": " + words
	}
	usage := r.GetUsage()
	facts := []string{
		plural(uint64(r.GetTurnCount()), "turn"),
		plural(uint64(r.GetToolCalls()), "tool call"),
		tokens(usage),
	}
	if cost := usage.GetCostMicroUsd(); cost > 0 {
		facts = append(facts, fmt.Sprintf("$%.4f", float64(cost)/1e6))
	}
	if q := r.GetQuality(); q != nil && q.CostShare != nil {
		facts = append(facts, fmt.Sprintf("judging $%.4f (%d %%)", float64(q.GetUsage().GetCostMicroUsd())/1e6, q.GetCostShare()))
	}
	if d := r.GetDuration().AsDuration(); measurable(d) {
		facts = append(facts, span(d))
	}
	lines := []string{s.bold(status), strings.Join(facts, s.dot())}
	if covered := CoverageLine(r.GetCoverage()); covered != "" {
		lines = append(lines, covered)
	}
	if made := s.deliverables(r.GetDeliverables()); len(made) > 0 {
		lines = append(append(lines, "deliverables:"), made...)
	}
	return lines
}

// tokens returns the tokens of a usage, with those written to the provider's cache and
// those of reasoning if there are any, and whether a part is only estimated.
func tokens(u *harnessv1.Usage) string {
	text := count(u.GetInputTokens()) + " tokens in"
	if n := u.GetCacheWriteTokens(); n > 0 {
		text += " (" + count(n) + " to the cache)"
	}
	text += ", " + count(u.GetOutputTokens()) + " out"
	if n := u.GetReasoningTokens(); n > 0 {
		text += " (" + count(n) + " reasoning)"
	}
	if u.GetEstimated() {
		text += " (estimated: the provider reports none)"
	}
	return text
}

func plural(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return count(n) + " " + what
}

// Answer returns the answer of a run: its output as JSON; without one, the agent's last
// text, and the summary of work_complete if the text does not contain it.
func Answer(r *harnessv1.HarnessResult) string {
	answer, summary := strings.TrimSpace(preview(r.GetAnswer())), strings.TrimSpace(preview(r.GetSummary()))
	switch {
	case r.GetOutput() != nil:
		return preview(r.GetOutput())
	case summary == "" || strings.Contains(answer, summary):
		return answer
	case answer == "":
		return summary
	}
	return answer + "\n\n" + summary
}
