package workitem

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Upsert puts changed items into the ledger: each in the place of the one that has
// its id, new ones at the end in their order. It makes of a ledger what Apply made
// of an equal one that these items came from.
func Upsert(l *harnessv1.WorkItemLedger, items []*harnessv1.WorkItem) {
	if l == nil || len(items) == 0 {
		return
	}
	for _, item := range items {
		put(l, item)
	}
	l.Stored = nil
}

// Merge is what several calls changed, as one list: each item once, as the last call
// left it, in the order in which they came first. Neither list is changed.
func Merge(changed, more []*harnessv1.WorkItem) []*harnessv1.WorkItem {
	merged := &harnessv1.WorkItemLedger{Items: append([]*harnessv1.WorkItem(nil), changed...)}
	Upsert(merged, more)
	return merged.GetItems()
}

// put is how items get into a ledger. The number of the last made-up id follows
// from their ids alone, so that it is the same wherever the items are put in.
func put(l *harnessv1.WorkItemLedger, item *harnessv1.WorkItem) {
	if at := index(l, item.GetId()); at >= 0 {
		l.Items[at] = item
		return
	}
	if number := nextNumber(l); item.GetId() == madeUp(number) {
		l.LastNumber = number
	}
	l.Items = append(l.Items, item)
}

func madeUp(number uint32) string { return "w" + strconv.FormatUint(uint64(number), 10) }

// nextNumber is the number of the next id that is made up: the first free one
// behind the last.
func nextNumber(l *harnessv1.WorkItemLedger) uint32 {
	number := l.GetLastNumber() + 1
	for index(l, madeUp(number)) >= 0 {
		number++
	}
	return number
}

// FromTemplates adds the items that every run of an agent begins with, all PENDING.
// Templates that CheckTemplates refuses are added as far as the ledger's bounds
// allow.
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
			Id: t.GetId(), Title: title(t.GetTitle()), Status: pending, Priority: t.GetPriority(), Role: t.GetRole(), Notes: notes(t.GetNotes()),
		}
		if item.Priority == 0 {
			item.Priority = medium
		}
		if item.Role == noRole {
			item.Role = working
		}
		if item.Id == "" {
			number := nextNumber(l)
			for chosen[madeUp(number)] || index(l, madeUp(number)) >= 0 {
				number++
			}
			l.LastNumber, item.Id = number, madeUp(number)
			l.Items = append(l.Items, item)
			continue
		}
		put(l, item)
	}
	l.Stored = nil
}

// Counts are the items that are DONE or SKIPPED, and all items.
func Counts(l *harnessv1.WorkItemLedger) (done, total int) {
	for _, i := range l.GetItems() {
		if finished(i) {
			done++
		}
	}
	return done, len(l.GetItems())
}

// Percent is how much of the work is finished, from 0 to 100, rounded down; 100 for
// an empty ledger.
func Percent(l *harnessv1.WorkItemLedger) int {
	done, total := Counts(l)
	if total == 0 {
		return 100
	}
	return 100 * done / total
}

// IsComplete says that nothing is open; it holds for an empty ledger.
func IsComplete(l *harnessv1.WorkItemLedger) bool { return openCount(l) == 0 }

// Open are the items on which something is left to do, in the ledger's order: those
// that are PENDING or IN_PROGRESS, and finished ones that were flagged for revision
// while no revision of them is finished.
func Open(l *harnessv1.WorkItemLedger) []*harnessv1.WorkItem {
	var open []*harnessv1.WorkItem
	settled := settled(l)
	for _, i := range l.GetItems() {
		if isOpen(i, settled) {
			open = append(open, i)
		}
	}
	return open
}

func openCount(l *harnessv1.WorkItemLedger) int {
	n, settled := 0, settled(l)
	for _, i := range l.GetItems() {
		if isOpen(i, settled) {
			n++
		}
	}
	return n
}

// settled are the ids of items of which a revision is finished.
func settled(l *harnessv1.WorkItemLedger) map[string]bool {
	var settled map[string]bool
	for _, i := range l.GetItems() {
		if i.GetRevisionOf() != "" && finished(i) {
			if settled == nil {
				settled = map[string]bool{}
			}
			settled[i.GetRevisionOf()] = true
		}
	}
	return settled
}

func isOpen(i *harnessv1.WorkItem, settled map[string]bool) bool {
	return !finished(i) || i.GetRequiresRevision() && !settled[i.GetId()]
}

// Deliverables are the artifacts of role DELIVERABLE that are not empty, in the
// ledger's order.
func Deliverables(l *harnessv1.WorkItemLedger) []*harnessv1.Deliverable {
	var made []*harnessv1.Deliverable
	for _, i := range l.GetItems() {
		if i.GetRole() == deliverable && hasArtifact(i) {
			made = append(made, &harnessv1.Deliverable{ItemId: i.GetId(), Title: i.GetTitle(), Content: proto.CloneOf(i.GetArtifact())})
		}
	}
	return made
}

func hasArtifact(i *harnessv1.WorkItem) bool {
	return i.GetArtifact().GetInline() != "" || i.GetArtifact().GetBlob() != nil
}
