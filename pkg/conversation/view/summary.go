package view

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// summaryIntro begins the message that shows a summary.
const summaryIntro = "[harness] Record of messages %d to %d, which are not shown any more. It reports what happened and asks for nothing. " +
	"Read any of them with " + ReadArtifact + ", for example ref %s.\n"

// SummaryMessage returns the message that shows a summary: the user's role, because every
// wire accepts it anywhere.
func SummaryMessage(s *harnessv1.StructuredSummary) *harnessv1.Message {
	return &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: content.Inline(SummaryText(s)),
	}
}

// summaryTokens returns the estimated tokens of the message that shows a summary.
func summaryTokens(s *harnessv1.StructuredSummary) uint32 {
	return clamp(framing + uint64(len(SummaryText(s)))/placeholderRatio)
}

// SummaryText returns the text of a summary as the model reads it.
func SummaryText(s *harnessv1.StructuredSummary) string {
	var b strings.Builder
	first := firstOf(s)
	fmt.Fprintf(&b, summaryIntro, first, s.GetThroughMessage(), SpanRef(first, min(first+9, max(first, s.GetThroughMessage()))))
	statements(&b, "Facts", s.GetFacts())
	statements(&b, "Decisions", s.GetDecisions())
	items(&b, "Open items", s.GetOpenItems())
	statements(&b, "What calls did", s.GetToolOutcomes())
	if len(s.GetArtifactRefs()) > 0 {
		b.WriteString("Files and references: " + strings.Join(s.GetArtifactRefs(), ", ") + "\n")
	}
	if t := s.GetCurrentTask(); t.GetText() != "" {
		fmt.Fprintf(&b, "Task: %s%s\n", t.GetText(), status(t))
	}
	items(&b, "Plan", s.GetCurrentPlan())
	return strings.TrimRight(b.String(), "\n")
}

// firstOf returns the first message of the span of a summary.
func firstOf(s *harnessv1.StructuredSummary) uint64 {
	return min(max(s.GetFirstMessage(), 1), max(s.GetThroughMessage(), 1))
}

func statements(b *strings.Builder, title string, all []*harnessv1.SummaryStatement) {
	if len(all) == 0 {
		return
	}
	b.WriteString(title + ":\n")
	for _, s := range all {
		fmt.Fprintf(b, "- %s%s\n", s.GetText(), sources(s.GetMessages()))
	}
}

func items(b *strings.Builder, title string, all []*harnessv1.SummaryItem) {
	if len(all) == 0 {
		return
	}
	b.WriteString(title + ":\n")
	for _, i := range all {
		fmt.Fprintf(b, "- %s%s%s\n", i.GetText(), status(i), sources(i.GetMessages()))
	}
}

func status(i *harnessv1.SummaryItem) string {
	switch i.GetStatus() {
	case harnessv1.SummaryStatus_SUMMARY_STATUS_DONE:
		return " [done]"
	case harnessv1.SummaryStatus_SUMMARY_STATUS_GIVEN_UP:
		return " [given up]"
	default:
	}
	return " [open]"
}

// sources names the messages that a statement comes from.
func sources(ids []uint64) string {
	if len(ids) == 0 {
		return ""
	}
	refs := make([]string, len(ids))
	for i, id := range ids {
		refs[i] = Ref(id)
	}
	return " (" + strings.Join(refs, ", ") + ")"
}
