package summary

import (
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Merge returns former with what next adds to it: statements that are new, items with their
// newest status, and the newest task and plan. former may be nil.
func Merge(former, next *harnessv1.StructuredSummary) *harnessv1.StructuredSummary {
	if former == nil {
		return next
	}
	m := proto.CloneOf(former)
	m.Facts = mergeStatements(m.GetFacts(), next.GetFacts())
	m.Decisions = mergeStatements(m.GetDecisions(), next.GetDecisions())
	m.ToolOutcomes = mergeStatements(m.GetToolOutcomes(), next.GetToolOutcomes())
	m.OpenItems = mergeItems(m.GetOpenItems(), next.GetOpenItems())
	if len(next.GetCurrentPlan()) > 0 {
		m.CurrentPlan = next.GetCurrentPlan()
	}
	if next.GetCurrentTask() != nil {
		m.CurrentTask = next.GetCurrentTask()
	}
	known := map[string]bool{}
	for _, ref := range m.GetArtifactRefs() {
		known[ref] = true
	}
	for _, ref := range next.GetArtifactRefs() {
		if !known[ref] {
			m.ArtifactRefs = append(m.ArtifactRefs, ref)
		}
	}
	m.ArtifactRefs = newest(m.GetArtifactRefs())
	m.ThroughMessage = next.GetThroughMessage()
	return m
}

// same is a text without what two ways of writing it differ in.
func same(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r <= ' ' || r == '.' || r == ',' }), " ")
}

func mergeStatements(former, next []*harnessv1.SummaryStatement) []*harnessv1.SummaryStatement {
	known := map[string]bool{}
	for _, s := range former {
		known[same(s.GetText())] = true
	}
	for _, s := range next {
		if key := same(s.GetText()); !known[key] {
			known[key] = true
			former = append(former, s)
		}
	}
	return newest(former)
}

// mergeItems changes the status of known items and adds new ones.
func mergeItems(former, next []*harnessv1.SummaryItem) []*harnessv1.SummaryItem {
	at := map[string]int{}
	for i, item := range former {
		at[same(item.GetText())] = i
	}
	for _, item := range next {
		key := same(item.GetText())
		if i, known := at[key]; known {
			former[i].Status = item.GetStatus()
			former[i].Messages = newestOf(append(former[i].GetMessages(), item.GetMessages()...), maxSources)
			continue
		}
		at[key] = len(former)
		former = append(former, item)
	}
	for i := 0; len(former) > maxEntries && i < len(former); { // closed entries are removed first
		if former[i].GetStatus() == harnessv1.SummaryStatus_SUMMARY_STATUS_OPEN {
			i++
			continue
		}
		former = append(former[:i], former[i+1:]...)
	}
	return newest(former)
}

func newest[T any](all []T) []T { return newestOf(all, maxEntries) }

func newestOf[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }

// Fit returns a summary whose rendering is at most limit bytes, as size measures it: outcomes
// of calls go first, then finished items, facts, references, and decisions last; of each the
// oldest.
func Fit(s *harnessv1.StructuredSummary, limit int, size func(*harnessv1.StructuredSummary) int) *harnessv1.StructuredSummary {
	if size(s) <= limit {
		return s
	}
	s = proto.CloneOf(s)
	for size(s) > limit {
		switch {
		case len(s.GetToolOutcomes()) > 0:
			s.ToolOutcomes = s.ToolOutcomes[1:]
		case finished(s) >= 0:
			i := finished(s)
			s.OpenItems = append(s.OpenItems[:i], s.OpenItems[i+1:]...)
		case len(s.GetFacts()) > 0:
			s.Facts = s.Facts[1:]
		case len(s.GetArtifactRefs()) > 0:
			s.ArtifactRefs = s.ArtifactRefs[1:]
		case len(s.GetOpenItems()) > 0:
			s.OpenItems = s.OpenItems[1:]
		case len(s.GetDecisions()) > 0:
			s.Decisions = s.Decisions[1:]
		default:
			return s
		}
	}
	return s
}

// finished returns the first item that is not open; -1 if there is none.
func finished(s *harnessv1.StructuredSummary) int {
	for i, item := range s.GetOpenItems() {
		if item.GetStatus() != harnessv1.SummaryStatus_SUMMARY_STATUS_OPEN {
			return i
		}
	}
	return -1
}
