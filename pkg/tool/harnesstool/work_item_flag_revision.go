package harnesstool

import "github.com/harnessmesh/harnessmesh/pkg/workitem"

var _ = register(50, workItemTool(workitem.FlagForRevision, workitem.FlagRevision,
	"Say that a work item has to be done again. Adds an item for the revision and returns its id; the first one stays open until that is finished.",
	itemID+`,"reason":{"type":"string","minLength":1,"description":"What is wrong and what has to change."}`,
	`"id","reason"`, "when an audit or a test finds a fault in an item"))
