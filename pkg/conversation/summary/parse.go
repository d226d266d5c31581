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
	"bytes"
	"encoding/json"
	"errors"
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

// Names of the fields, as the prompt states them.
const (
	fieldFacts        = "facts"
	fieldDecisions    = "decisions"
	fieldOpenItems    = "openitems"
	fieldToolOutcomes = "tooloutcomes"
	fieldArtifactRefs = "artifactrefs"
	fieldCurrentTask  = "currenttask"
	fieldCurrentPlan  = "currentplan"
)

// names are the fields of a summary, without what models write differently in them.
var names = map[string]bool{
	fieldFacts: true, fieldDecisions: true, fieldOpenItems: true, fieldToolOutcomes: true, fieldArtifactRefs: true, fieldCurrentTask: true, fieldCurrentPlan: true,
}

// maxStarts bounds the places in an answer that are tried as the beginning of its object.
const maxStarts = 16

// entry is one statement or item.
type entry struct {
	text     string
	status   string
	messages []uint64
}

// Parse reads the answer of a model about the messages from first to through, field by field: what cannot be
// read of it is left out. It is an error if nothing is left.
func Parse(text string, first, through uint64) (*harnessv1.StructuredSummary, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the summarizer returned nothing")
	}
	found, anyObject := find(text)
	switch {
	case !anyObject:
		return nil, errors.New("the summarizer returned no JSON object")
	case found == nil:
		return nil, errors.New("the summarizer returned JSON of another shape: no field of a summary is in it")
	}
	s := &harnessv1.StructuredSummary{
		Facts: statements(found[fieldFacts], first, through), Decisions: statements(found[fieldDecisions], first, through),
		ToolOutcomes: statements(found[fieldToolOutcomes], first, through), OpenItems: items(found[fieldOpenItems], first, through),
		CurrentPlan: items(found[fieldCurrentPlan], first, through), FirstMessage: first, ThroughMessage: through,
	}
	for _, e := range found[fieldArtifactRefs] {
		if text := clean(e.text); text != "" && len(s.ArtifactRefs) < maxEntries {
			s.ArtifactRefs = append(s.ArtifactRefs, text)
		}
	}
	if task := items(found[fieldCurrentTask], first, through); len(task) > 0 {
		s.CurrentTask = task[0]
	}
	if len(s.GetFacts())+len(s.GetDecisions())+len(s.GetOpenItems())+len(s.GetToolOutcomes())+len(s.GetCurrentPlan()) == 0 && s.GetCurrentTask() == nil {
		return nil, errors.New("the summarizer returned a summary without facts, decisions, items or outcomes")
	}
	return s, nil
}

// find returns the fields of the first object in a text that has any; nil if none has. object
// reports whether there is one.
func find(text string) (found map[string][]entry, object bool) {
	for range maxStarts {
		start := strings.IndexByte(text, '{')
		if start < 0 {
			break
		}
		text = text[start:]
		fields, whole := members([]byte(text))
		object = object || whole
		if found = known(fields, 0); found != nil {
			return found, true
		}
		text = text[1:]
	}
	return nil, object
}

// member is one of an object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of the object that a text begins with, up to the first that cannot be read, as in
// an answer that was cut. whole reports whether all can.
func members(text []byte) (all []member, whole bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		var m member
		if err != nil || d.Decode(&m.value) != nil {
			return all, false
		}
		m.name, _ = name.(string)
		all = append(all, m)
	}
	_, err := d.Token()
	return all, err == nil
}

// known returns the fields of a summary among members, or within the one object among them; nil if there are none.
func known(all []member, depth int) map[string][]entry {
	var found map[string][]entry
	for _, m := range all {
		name := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(m.name))
		if !names[name] {
			continue
		}
		if found == nil {
			found = map[string][]entry{}
		}
		found[name] = append(found[name], entries(m.value, 0)...)
	}
	for i := 0; i < len(all) && found == nil && depth < maxDepth; i++ {
		inner, _ := members(all[i].value)
		found = known(inner, depth+1)
	}
	return found
}

// maxDepth bounds lists and objects within others.
const maxDepth = 4

// entries reads a text, a list or an object.
func entries(raw json.RawMessage, depth int) []entry {
	var text string
	var list []json.RawMessage
	switch {
	case depth > maxDepth || len(raw) == 0 || string(raw) == "null":
		return nil
	case raw[0] == '"':
		if json.Unmarshal(raw, &text) != nil {
			return nil
		}
		if depth > 0 { // an element of a list is one entry
			return []entry{{text: text}}
		}
		return lines(text)
	case raw[0] == '[':
		_ = json.Unmarshal(raw, &list) // it was read as a value before
		var all []entry
		for _, one := range list {
			all = append(all, entries(one, depth+1)...)
		}
		return all
	case raw[0] == '{':
		return object(raw, depth)
	}
	return []entry{{text: string(raw)}} // a number, true or false
}

// lines returns the lines of a text instead of a list, without its marks. A flag such as -race, or
// a negative number, is no mark.
func lines(text string) []entry {
	var all []entry
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, mark := range []string{"- ", "* ", "• "} {
			line = strings.TrimSpace(strings.TrimPrefix(line, mark))
		}
		if line != "" {
			all = append(all, entry{text: line})
		}
	}
	return all
}

// object reads one entry, or an object whose members are entries.
func object(raw json.RawMessage, depth int) []entry {
	all, _ := members(raw)
	var e entry
	for _, m := range all {
		switch strings.ToLower(m.name) {
		case "text":
			e.text = plain(m.value)
		case "status":
			e.status = plain(m.value)
		case "messages":
			e.messages = numbers(m.value)
		}
	}
	if e.text != "" {
		return []entry{e}
	}
	var list []entry
	for _, m := range all {
		for _, one := range entries(m.value, depth+1) {
			one.text = m.name + ": " + one.text
			list = append(list, one)
		}
	}
	return list
}

// plain returns a text, or what a value of another kind is as text.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []string
	for _, e := range entries(raw, maxDepth-1) {
		parts = append(parts, e.text)
	}
	return strings.Join(parts, "; ")
}

// numbers returns the numbers of messages in a list, or the one in a value, such as 12 or "m12".
func numbers(raw json.RawMessage) []uint64 {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var ids []uint64
	for _, one := range list {
		if id, err := strconv.ParseUint(strings.TrimPrefix(strings.Trim(string(one), `"#`), "m"), 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
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
