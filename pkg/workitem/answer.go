package workitem

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// view is an item as the model sees it.
type view struct {
	ID            string   `json:"id"`
	Title         string   `json:"title"`
	Status        string   `json:"status"`
	Priority      string   `json:"priority"`
	Role          string   `json:"role"`
	HasArtifact   bool     `json:"has_artifact"`
	NeedsRevision bool     `json:"requires_revision,omitempty"`
	RevisionOf    string   `json:"revision_of,omitempty"`
	Verdict       string   `json:"verdict,omitempty"`
	FailedChecks  []string `json:"failed_checks,omitempty"`
	Notes         string   `json:"notes,omitempty"`
}

func viewOf(i *harnessv1.WorkItem) view {
	v := view{
		ID: i.GetId(), Title: i.GetTitle(), Status: statusName(i.GetStatus()), Priority: priorityName(i.GetPriority()), Role: roleName(i.GetRole()),
		HasArtifact: hasArtifact(i), NeedsRevision: i.GetRequiresRevision(), RevisionOf: i.GetRevisionOf(), Notes: i.GetNotes(),
	}
	if c := i.GetControl(); c != nil {
		v.Verdict, v.FailedChecks = "fail", c.GetFailedChecks()
		if c.GetPassed() {
			v.Verdict = "pass"
		}
	}
	return v
}

// answer returns the result of a call about an item: the item and the state of the
// ledger.
func answer(l *harnessv1.WorkItemLedger, item *harnessv1.WorkItem, hint string) string {
	v := viewOf(item)
	v.Notes, v.FailedChecks = "", nil // the model has just written them
	return encode(struct {
		view
		Open  int    `json:"open"`
		Total int    `json:"total"`
		Hint  string `json:"hint,omitempty"`
	}{v, openCount(l), len(l.GetItems()), hint})
}

// A listing of more items than this is shortened: notes are cut, and those of finished
// items are omitted.
const (
	fullListing = 40
	listedNotes = 120 // bytes
)

// listing returns all items, one on a line.
func listing(l *harnessv1.WorkItemLedger) string {
	finishedItems, total := Counts(l)
	var b strings.Builder
	head := encode(struct {
		Finished int `json:"finished"`
		Total    int `json:"total"`
		Percent  int `json:"percent"`
		Open     int `json:"open"`
	}{finishedItems, total, Percent(l), openCount(l)})
	b.WriteString(strings.TrimSuffix(head, "}") + `,"items":[`)
	for n, i := range l.GetItems() {
		v := viewOf(i)
		if total > fullListing {
			v.Notes, v.FailedChecks = content.Line(v.Notes, listedNotes), nil
			if finished(i) {
				v.Notes = ""
			}
		}
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + encode(v))
	}
	b.WriteString("]}")
	return b.String()
}

// encode returns a value as JSON without escapes for HTML.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // views hold nothing that JSON has no words for
	}
	return strings.TrimSuffix(b.String(), "\n")
}
