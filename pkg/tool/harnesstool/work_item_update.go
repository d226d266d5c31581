package harnesstool

import "github.com/harnessmesh/harnessmesh/pkg/workitem"

var _ = register(20, workItemTool(workitem.UpdateItem, workitem.Update,
	"Change the status of a work item, its notes, or both. Any change of status is allowed.",
	itemID+`,"status":{"type":["string","null"],"description":"PENDING, IN_PROGRESS, DONE, or SKIPPED (then notes have to say why). Left out, it stays."},`+itemNotes,
	`"id"`, "as soon as an item is begun, finished or given up, not all at the end"))
