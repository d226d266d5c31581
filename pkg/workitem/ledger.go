package workitem

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Upsert stores changed items in the ledger: each replaces the item with its id, new
// items follow at the end in their order. It repeats the changes that a tool made to an
// equal ledger.
func Upsert(l *harnessv1.WorkItemLedger, items []*harnessv1.WorkItem) {
	if l == nil || len(items) == 0 {
		return
	}
	for _, item := range items {
		put(l, item)
	}
	l.Stored = nil
}

// Merge combines the changes of several calls into one list, with the last state of each
// item, in the order of their first change. It changes neither list.
func Merge(changed, more []*harnessv1.WorkItem) []*harnessv1.WorkItem {
	merged := &harnessv1.WorkItemLedger{Items: append([]*harnessv1.WorkItem(nil), changed...)}
	Upsert(merged, more)
	return merged.GetItems()
}

// put stores an item in a ledger. The number of the last generated id depends on the ids
// alone, so every worker computes the same.
func put(l *harnessv1.WorkItemLedger, item *harnessv1.WorkItem) {
	if at := index(l, item.GetId()); at >= 0 {
		l.Items[at] = item
		return
	}
	if number := nextNumber(l); item.GetId() == generatedID(number) {
		l.LastNumber = number
	}
	l.Items = append(l.Items, item)
}

func generatedID(number uint32) string { return "w" + strconv.FormatUint(uint64(number), 10) }

// nextNumber returns the number of the next generated id: the first free one after the
// last.
func nextNumber(l *harnessv1.WorkItemLedger) uint32 {
	number := l.GetLastNumber() + 1
	for index(l, generatedID(number)) >= 0 {
		number++
	}
	return number
}

// FromTemplates adds the items that every run of an agent starts with, all PENDING. It
// adds templates that CheckTemplates rejects as far as the limits of the ledger allow.
func FromTemplates(l *harnessv1.WorkItemLedger, templates []*harnessv1.WorkItemTemplate) {
	if l == nil || len(templates) == 0 {
		return
	}
	chosen := map[string]bool{}
	for _, t := range templates {
		chosen[t.GetId()] = true
	}
	for _, t := range templates {
		if len(l.GetItems()) >= MaxItems || len(Open(l)) >= MaxOpen {
			break
		}
		item := &harnessv1.WorkItem{
			Id: t.GetId(), Title: title(t.GetTitle()), Status: pending, Priority: t.GetPriority(), Role: t.GetRole(), Notes: cutNotes(t.GetNotes()),
		}
		if item.Priority == 0 {
			item.Priority = medium
		}
		if item.Role == noRole {
			item.Role = working
		}
		if item.Id == "" {
			number := nextNumber(l)
			for chosen[generatedID(number)] || index(l, generatedID(number)) >= 0 {
				number++
			}
			l.LastNumber, item.Id = number, generatedID(number)
			l.Items = append(l.Items, item)
			continue
		}
		put(l, item)
	}
	l.Stored = nil
}

// Counts returns the number of items that are DONE or SKIPPED, and of all items.
func Counts(l *harnessv1.WorkItemLedger) (done, total int) {
	for _, i := range l.GetItems() {
		if finished(i) {
			done++
		}
	}
	return done, len(l.GetItems())
}

// Percent returns the share of finished items, from 0 to 100, rounded down; 100 for an
// empty ledger.
func Percent(l *harnessv1.WorkItemLedger) int {
	done, total := Counts(l)
	if total == 0 {
		return 100
	}
	return 100 * done / total
}

// IsComplete reports whether no item is open. It is true for an empty ledger.
func IsComplete(l *harnessv1.WorkItemLedger) bool { return openCount(l) == 0 }

// Open returns the open items, in the order of the ledger: those that are PENDING or
// IN_PROGRESS, those that are flagged for revision without a finished revision, and
// failed audits in a ledger without any revision.
func Open(l *harnessv1.WorkItemLedger) []*harnessv1.WorkItem {
	var open []*harnessv1.WorkItem
	revisions := revisionsOf(l)
	for _, i := range l.GetItems() {
		if revisions.isOpen(i) {
			open = append(open, i)
		}
	}
	return open
}

func openCount(l *harnessv1.WorkItemLedger) int {
	n, revisions := 0, revisionsOf(l)
	for _, i := range l.GetItems() {
		if revisions.isOpen(i) {
			n++
		}
	}
	return n
}

// revisions are the items of a ledger that revise others.
type revisions struct {
	any      bool            // an item is a revision
	finished map[string]bool // ids of items with a finished revision
}

func revisionsOf(l *harnessv1.WorkItemLedger) revisions {
	var r revisions
	for _, i := range l.GetItems() {
		if i.GetRevisionOf() == "" {
			continue
		}
		r.any = true
		if finished(i) {
			if r.finished == nil {
				r.finished = map[string]bool{}
			}
			r.finished[i.GetRevisionOf()] = true
		}
	}
	return r
}

func (r revisions) isOpen(i *harnessv1.WorkItem) bool {
	return !finished(i) || i.GetRequiresRevision() && !r.finished[i.GetId()] || !r.any && failedAudit(i)
}

// Deliverables returns the artifacts of role DELIVERABLE that are not empty, in the order
// of the ledger. The artifact of a revision that is DONE replaces that of the item that
// it revises, under the id and title of that item. Of several such revisions the last one
// in the ledger counts.
func Deliverables(l *harnessv1.WorkItemLedger) []*harnessv1.Deliverable {
	completed := map[string][]*harnessv1.WorkItem{}
	for _, i := range l.GetItems() {
		if i.GetRevisionOf() != "" && i.GetStatus() == done {
			completed[i.GetRevisionOf()] = append(completed[i.GetRevisionOf()], i)
		}
	}
	var newest func(*harnessv1.WorkItem) *harnessv1.Content
	newest = func(i *harnessv1.WorkItem) *harnessv1.Content {
		for _, revision := range slices.Backward(completed[i.GetId()]) {
			if artifact := newest(revision); artifact != nil {
				return artifact
			}
		}
		if i.GetRole() == deliverable && hasArtifact(i) {
			return i.GetArtifact()
		}
		return nil
	}
	made := savedDeliverables(l)
	for _, i := range l.GetItems() {
		replaces := i.GetStatus() == done && index(l, i.GetRevisionOf()) >= 0
		if artifact := newest(i); artifact != nil && !replaces {
			made = append(made, &harnessv1.Deliverable{ItemId: i.GetId(), Title: i.GetTitle(), Content: proto.CloneOf(artifact)})
		}
	}
	return made
}

func hasArtifact(i *harnessv1.WorkItem) bool {
	return i.GetArtifact().GetInline() != "" || i.GetArtifact().GetBlob() != nil
}
