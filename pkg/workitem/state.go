package workitem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Limits of the texts for the model.
const (
	maxLines    = 40   // items in a list
	maxReminded = 20   // items in a reminder
	maxReminder = 1024 // bytes of failed checks in a reminder
	maxTools    = 16   // tools whose usage is named
	enoughReads = 10
)

const marks = "[ ] pending, [~] in progress, [x] done, [-] skipped, [!] finished but to be revised"

// State returns the text at the start of a turn while items are open: their number, the
// list with marks, the use of tools, and, below ten reads, the advice to read more before
// writing. Empty if no item is open.
func State(l *harnessv1.WorkItemLedger, usage []*harnessv1.ToolUsage, reads uint32) string {
	var buffer [6144]byte
	b := appendList(buffer[:0], l)
	if len(b) == 0 {
		return ""
	}
	b = append(b, "Marks: "+marks+".\n"...)
	b = appendUsage(b, usage)
	switch {
	case reads == 0:
		b = append(b, "Nothing has been read yet. Read what the work rests on before you write.\n"...)
	case reads < enoughReads:
		b = append(b, "Only "...)
		b = append(b, count(int(reads), "read")...)
		b = append(b, " so far. Before you write, read on until you know what you write about.\n"...)
	}
	b = append(b, "Go on with the next open item."...)
	return string(b)
}

// appendList appends the number of open items and the list of items, open ones first, in
// at most 40 lines. It appends nothing if no item is open.
func appendList(b []byte, l *harnessv1.WorkItemLedger) []byte {
	revisions, open, total := revisionsOf(l), 0, len(l.GetItems())
	for _, i := range l.GetItems() {
		if revisions.isOpen(i) {
			open++
		}
	}
	if open == 0 {
		return b
	}
	b = append(b, "Work items: "...)
	b = strconv.AppendInt(b, int64(open), 10)
	b = append(b, " of "...)
	b = strconv.AppendInt(b, int64(total), 10)
	b = append(b, " remain.\n"...)
	lines := 0
	for _, opened := range []bool{true, false} {
		for _, i := range l.GetItems() {
			if revisions.isOpen(i) == opened && lines < maxLines {
				b = appendLine(b, i, opened)
				lines++
			}
		}
	}
	if more := total - lines; more > 0 {
		b = append(b, "… "...)
		b = strconv.AppendInt(b, int64(more), 10)
		b = append(b, " more; "+List+" shows all.\n"...)
	}
	return b
}

func appendLine(b []byte, i *harnessv1.WorkItem, open bool) []byte {
	mark := "[ ] "
	switch {
	case finished(i) && open:
		mark = "[!] "
	case i.GetStatus() == inProgress:
		mark = "[~] "
	case i.GetStatus() == done:
		mark = "[x] "
	case i.GetStatus() == skipped:
		mark = "[-] "
	}
	b = append(b, mark...)
	b = append(b, i.GetId()...)
	b = append(b, ' ')
	b = append(b, i.GetTitle()...)
	if open {
		switch i.GetPriority() {
		case high:
			b = append(b, ", high priority"...)
		case low:
			b = append(b, ", low priority"...)
		default: // medium is not shown
		}
	}
	if i.GetRevisionOf() != "" {
		b = append(b, ", revision of "...)
		b = append(b, i.GetRevisionOf()...)
	}
	if hasArtifact(i) {
		b = append(b, ", has an artifact"...)
	}
	if open && failedAudit(i) {
		b = append(b, ", failed audit"...)
	}
	return append(b, '\n')
}

// appendUsage appends the number of calls of each tool, the most used ones first.
func appendUsage(b []byte, usage []*harnessv1.ToolUsage) []byte {
	used := make([]*harnessv1.ToolUsage, 0, len(usage))
	for _, u := range usage {
		if u.GetCalls() > 0 {
			used = append(used, u)
		}
	}
	slices.SortStableFunc(used, func(x, y *harnessv1.ToolUsage) int {
		if x.GetCalls() != y.GetCalls() {
			return int(int64(y.GetCalls()) - int64(x.GetCalls()))
		}
		return strings.Compare(x.GetTool(), y.GetTool())
	})
	b = append(b, "Tools used so far: "...)
	if len(used) == 0 {
		return append(b, "none.\n"...)
	}
	for n, u := range used[:min(len(used), maxTools)] {
		if n > 0 {
			b = append(b, ", "...)
		}
		b = append(b, content.Line(u.GetTool(), 64)...)
		b = append(b, ' ')
		b = strconv.AppendUint(b, uint64(u.GetCalls()), 10)
	}
	if more := len(used) - maxTools; more > 0 {
		b = append(b, " and "...)
		b = append(b, count(more, "other")...)
	}
	return append(b, ".\n"...)
}

// Summary returns one line for a turn in which State would repeat itself: how many items
// are open, and which. Empty if none is.
func Summary(l *harnessv1.WorkItemLedger) string {
	open := Open(l)
	switch len(open) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 of %s remains: %s", count(len(l.GetItems()), "work item"), open[0].GetId())
	}
	return fmt.Sprintf("%d of %s remain: %s", len(open), count(len(l.GetItems()), "work item"), ids(open, maxReminded))
}

// Reminder returns the text for a stop that was rejected because items are open: which
// ones, and what to do with each. Empty if none is open.
func Reminder(l *harnessv1.WorkItemLedger) string {
	open := Open(l)
	if len(open) == 0 {
		return ""
	}
	var b strings.Builder
	verb := "are"
	if len(open) == 1 {
		verb = "is"
	}
	fmt.Fprintf(&b, "The work cannot be completed yet: %d of %s %s open.\n", len(open), count(len(l.GetItems()), "work item"), verb)
	for _, i := range open[:min(len(open), maxReminded)] {
		fmt.Fprintf(&b, "- %s %q: %s\n", i.GetId(), i.GetTitle(), todo(l, i))
	}
	if more := len(open) - maxReminded; more > 0 {
		fmt.Fprintf(&b, "- and %d more; %s shows them.\n", more, List)
	}
	fmt.Fprintf(&b, "Do the work that is left. Set each item to DONE with %s once it is done, or to SKIPPED with the reason in its notes if it is not to be done. Then call work_complete again.", Update)
	return b.String()
}

// todo returns the next step of an open item.
func todo(l *harnessv1.WorkItemLedger, i *harnessv1.WorkItem) string {
	if !finished(i) {
		text := "not begun; do it, or skip it."
		if i.GetStatus() == inProgress {
			text = "in progress; finish it."
		}
		if i.GetRevisionOf() != "" {
			text = fmt.Sprintf("revision of %s; %s", i.GetRevisionOf(), text)
			if i.GetNotes() != "" {
				text += " Wanted: " + content.Line(i.GetNotes(), 160)
			}
		}
		return text
	}
	if !i.GetRequiresRevision() {
		text := "the audit failed and no revision is flagged; flag one with " + FlagRevision + " for each item at fault, or audit again."
		if checks := i.GetControl().GetFailedChecks(); len(checks) > 0 {
			text += " Failed checks: " + content.Line(strings.Join(checks, "; "), maxReminder)
		}
		return text
	}
	var revisions []*harnessv1.WorkItem
	for _, r := range l.GetItems() {
		if r.GetRevisionOf() == i.GetId() {
			revisions = append(revisions, r)
		}
	}
	if len(revisions) == 0 {
		return "flagged for revision; flag it again with " + FlagRevision + " and finish the item that this adds."
	}
	return "finished, but flagged for revision; finish " + ids(revisions, 4) + "."
}
