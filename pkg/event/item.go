package event

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// WorkItemChanged reports that a work item was added or changed. item is kept:
// pass a copy without its artifact. finished and total count the items.
func WorkItemChanged(change string, item *harnessv1.WorkItem, finished, total int) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_WorkItemChanged{WorkItemChanged: &harnessv1.WorkItemChanged{
		Change: change, Item: item, Finished: uint32(finished), Total: uint32(total), //nolint:gosec // at most 200
	}}}
}

// DeliverablesUpdated reports that an artifact of a work item was stored.
func DeliverablesUpdated(itemID, title string, role harnessv1.ArtifactRole) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_DeliverablesUpdated{DeliverablesUpdated: &harnessv1.DeliverablesUpdated{
		ItemId: itemID, Title: title, Role: role,
	}}}
}
