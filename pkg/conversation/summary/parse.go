// Package summary asks a model for the summary of a span of messages, reads its answer, and
// merges it with the summary before.
//
// A summary is a record in fields, not prose: a later one adds to the former and changes the
// status of its items, so that nothing is summarised twice. What a model answers is data:
// unknown fields, sources outside the span and texts that are too long are left out or cut.
//
// The package is pure.
package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds of a summary.
const (
	maxEntries = 64  // of a field
	maxText    = 400 // bytes of an entry
	maxSources = 8   // messages that an entry names
)

// answer is the JSON that the prompt requests.
type answer struct {
	Facts        []entry `json:"facts"`
	Decisions    []entry `json:"decisions"`
	OpenItems    []entry `json:"open_items"`
	ToolOutcomes []entry `json:"tool_outcomes"`
	ArtifactRefs []entry `json:"artifact_refs"`
	CurrentTask  *entry  `json:"current_task"`
	CurrentPlan  []entry `json:"current_plan"`
}

// entry is an object with a text, or only the text.
type entry struct {
	text     string
	status   string
	messages []uint64
}

// UnmarshalJSON reads an object or a string.
func (e *entry) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &e.text) == nil {
		return nil
	}
	var object struct {
		Text     string            `json:"text"`
		Status   string            `json:"status"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	e.text, e.status = object.Text, object.Status
	for _, raw := range object.Messages {
		id, err := strconv.ParseUint(strings.TrimPrefix(strings.Trim(string(raw), `"`), "m"), 10, 64)
		if err == nil {
			e.messages = append(e.messages, id)
		}
	}
	return nil
}

// Parse reads the answer of a model about the messages from first to through.
func Parse(text string, first, through uint64) (*harnessv1.StructuredSummary, error) {
	start, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the summarizer returned nothing")
	}
	if start < 0 || end < start {
		return nil, errors.New("the summarizer returned no JSON object")
	}
	var a answer
	if err := json.Unmarshal([]byte(text[start:end+1]), &a); err != nil {
		return nil, fmt.Errorf("the summarizer returned JSON of another shape: %w", err)
	}
	s := &harnessv1.StructuredSummary{
		Facts: statements(a.Facts, first, through), Decisions: statements(a.Decisions, first, through), ToolOutcomes: statements(a.ToolOutcomes, first, through),
		OpenItems: items(a.OpenItems, first, through), CurrentPlan: items(a.CurrentPlan, first, through), FirstMessage: first, ThroughMessage: through,
	}
	for _, e := range a.ArtifactRefs {
		if text := clean(e.text); text != "" && len(s.ArtifactRefs) < maxEntries {
			s.ArtifactRefs = append(s.ArtifactRefs, text)
		}
	}
	if a.CurrentTask != nil && clean(a.CurrentTask.text) != "" {
		s.CurrentTask = item(*a.CurrentTask, first, through)
	}
	if len(s.GetFacts())+len(s.GetDecisions())+len(s.GetOpenItems())+len(s.GetToolOutcomes())+len(s.GetCurrentPlan()) == 0 && s.GetCurrentTask() == nil {
		return nil, errors.New("the summarizer returned a summary without facts, decisions, items or outcomes")
	}
	return s, nil
}

// clean returns a text on one line, without the mark that the harness's own messages begin
// with.
func clean(text string) string {
	text = content.Line(strings.ToValidUTF8(text, "\uFFFD"), maxText)
	for strings.HasPrefix(text, "[harness]") {
		text = strings.TrimSpace(strings.TrimPrefix(text, "[harness]"))
	}
	return text
}

func statements(all []entry, first, through uint64) []*harnessv1.SummaryStatement {
	var list []*harnessv1.SummaryStatement
	for _, e := range all {
		if text := clean(e.text); text != "" && len(list) < maxEntries {
			list = append(list, &harnessv1.SummaryStatement{Text: text, Messages: sources(e.messages, first, through)})
		}
	}
	return list
}

func items(all []entry, first, through uint64) []*harnessv1.SummaryItem {
	var list []*harnessv1.SummaryItem
	for _, e := range all {
		if clean(e.text) != "" && len(list) < maxEntries {
			list = append(list, item(e, first, through))
		}
	}
	return list
}

func item(e entry, first, through uint64) *harnessv1.SummaryItem {
	status := harnessv1.SummaryStatus_SUMMARY_STATUS_OPEN
	switch strings.ToLower(strings.NewReplacer(" ", "_", "-", "_").Replace(strings.TrimSpace(e.status))) {
	case "done", "completed", "finished":
		status = harnessv1.SummaryStatus_SUMMARY_STATUS_DONE
	case "given_up", "abandoned", "dropped", "cancelled":
		status = harnessv1.SummaryStatus_SUMMARY_STATUS_GIVEN_UP
	}
	return &harnessv1.SummaryItem{Text: clean(e.text), Status: status, Messages: sources(e.messages, first, through)}
}

// sources returns the messages of the span among ids.
func sources(ids []uint64, first, through uint64) []uint64 {
	var list []uint64
	for _, id := range ids {
		if id >= first && id <= through && len(list) < maxSources {
			list = append(list, id)
		}
	}
	return list
}
