package contract

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Sizes of the three lists in the text of a gap report, in bytes: 6 KB in total with
// the headings.
const (
	maxGapUnmet       = 3400
	maxGapQuestions   = 900
	maxGapSuggestions = 1300
)

// GapText returns a gap report as the model reads it: the missing outputs with the reasons, the
// questions are open, and what to do. It has at most 6,000 bytes; a longer list ends
// with the number of the omitted lines. The text of an empty report is empty.
func GapText(gap *harnessv1.GapReport) string {
	unmet, questions := gap.GetUnmetRequirements(), gap.GetUnansweredQuestions()
	if len(unmet)+len(questions) == 0 {
		return ""
	}
	var out strings.Builder
	out.Grow(6000)
	out.WriteString("The work does not count as done yet: its contract is not fulfilled.\n")
	if len(unmet) > 0 {
		fmt.Fprintf(&out, "\nNot met (%d):\n", len(unmet))
		list(&out, maxGapUnmet, len(unmet), func(line []byte, i int) []byte {
			line = append(line, unmet[i].GetId()...)
			if d := unmet[i].GetDescription(); d != "" {
				line = append(append(append(line, " ("...), d...), ')')
			}
			if w := unmet[i].GetWhy(); w != "" {
				line = append(append(line, ": "...), w...)
			}
			return line
		})
	}
	if len(questions) > 0 {
		fmt.Fprintf(&out, "\nQuestions that only the user can answer, without an answer so far (%d):\n", len(questions))
		list(&out, maxGapQuestions, len(questions), func(line []byte, i int) []byte { return append(line, questions[i]...) })
	}
	if suggestions := gap.GetSuggestions(); len(suggestions) > 0 {
		out.WriteString("\nWhat to do:\n")
		list(&out, maxGapSuggestions, len(suggestions), func(line []byte, i int) []byte { return append(line, suggestions[i]...) })
	}
	if len(unmet) > 0 {
		out.WriteString("\nBring about what is missing, then finish again. Saying that it is there does not count: it is looked at.\n")
	}
	return out.String()
}

// list writes the lines that fit into the limit, and the number of the others.
func list(out *strings.Builder, limit, n int, line func(to []byte, i int) []byte) {
	start := out.Len()
	scratch := make([]byte, 0, 640)
	for i := range n {
		scratch = append(scratch[:0], "- "...)
		scratch = append(line(scratch, i), '\n')
		if out.Len()-start+len(scratch) > limit {
			fmt.Fprintf(out, "… and %d more\n", n-i)
			return
		}
		out.Write(scratch)
	}
}
