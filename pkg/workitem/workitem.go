// Package workitem keeps the ledger of a run's work items: the five tools with which an
// agent changes it, the open and finished items, the texts for the model about them, and
// the checks of stored artifacts.
//
// It is pure. The caller owns a WorkItemLedger. Items are never changed in place: a
// changed item replaces the old one, so ledgers and records may share items.
//
// An item is finished if it is DONE or SKIPPED. It is open if it is not finished, or if
// it is flagged for revision and no revision of it is finished, or if it is an audit that
// failed and no item is a revision. A ledger has at most 200 items, of which at most 64
// are open; no tool call exceeds that. Invalid input of a model makes a function return
// an error result, never fail otherwise. A nil ledger is empty and cannot be changed.
package workitem

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Limits of a ledger.
const (
	MaxItems = 200 // in all
	MaxOpen  = 64
	MaxTitle = 120 // bytes
	MaxNotes = 512 // bytes
)

const (
	pending    = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING
	inProgress = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS
	done       = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE
	skipped    = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_SKIPPED

	high   = harnessv1.WorkItemPriority_WORK_ITEM_PRIORITY_HIGH
	medium = harnessv1.WorkItemPriority_WORK_ITEM_PRIORITY_MEDIUM
	low    = harnessv1.WorkItemPriority_WORK_ITEM_PRIORITY_LOW

	noRole      = harnessv1.ArtifactRole_ARTIFACT_ROLE_UNSPECIFIED
	deliverable = harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE
	working     = harnessv1.ArtifactRole_ARTIFACT_ROLE_WORKING
	control     = harnessv1.ArtifactRole_ARTIFACT_ROLE_CONTROL
)

var idFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}$`) })

const idRule = "an id has 1 to 32 letters, digits, dots, underscores or hyphens"

// finished reports whether an item is DONE or SKIPPED.
func finished(i *harnessv1.WorkItem) bool {
	return i.GetStatus() == done || i.GetStatus() == skipped
}

// index returns the index of the item with an id, -1 if there is none.
func index(l *harnessv1.WorkItemLedger, id string) int {
	for n, i := range l.GetItems() {
		if i.GetId() == id {
			return n
		}
	}
	return -1
}

// title returns a title as it is stored: one line of at most 120 bytes.
func title(text string) string { return content.Cut(content.OneLine(text), MaxTitle) }

// cutNotes returns notes in the form that is stored: at most 512 bytes.
func cutNotes(text string) string {
	return content.Cut(strings.TrimSpace(strings.ReplaceAll(text, "\x00", "")), MaxNotes)
}

// Names as the model writes and reads them.

func statusName(s harnessv1.WorkItemStatus) string {
	switch s {
	case inProgress:
		return "IN_PROGRESS"
	case done:
		return "DONE"
	case skipped:
		return "SKIPPED"
	default:
		return "PENDING"
	}
}

func priorityName(p harnessv1.WorkItemPriority) string {
	switch p {
	case high:
		return "HIGH"
	case low:
		return "LOW"
	default:
		return "MEDIUM"
	}
}

func roleName(r harnessv1.ArtifactRole) string {
	switch r {
	case deliverable:
		return "DELIVERABLE"
	case control:
		return "CONTROL"
	default:
		return "WORKING"
	}
}

// word returns the form in which names are compared: in-progress and "In progress" are
// IN_PROGRESS.
func word(text string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToUpper(strings.TrimSpace(text)))
}

func parseStatus(text string) (harnessv1.WorkItemStatus, bool) {
	for _, s := range []harnessv1.WorkItemStatus{pending, inProgress, done, skipped} {
		if statusName(s) == word(text) {
			return s, true
		}
	}
	return 0, false
}

func parsePriority(text string) (harnessv1.WorkItemPriority, bool) {
	for _, p := range []harnessv1.WorkItemPriority{high, medium, low} {
		if priorityName(p) == word(text) {
			return p, true
		}
	}
	return medium, false
}

func parseRole(text string) (harnessv1.ArtifactRole, bool) {
	for _, r := range []harnessv1.ArtifactRole{deliverable, working, control} {
		if roleName(r) == word(text) {
			return r, true
		}
	}
	return working, false
}

// count returns a number with its noun: "1 item", "2 items".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
