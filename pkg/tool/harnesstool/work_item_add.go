package harnesstool

import "github.com/harnessmesh/harnessmesh/pkg/workitem"

var _ = register(10, workItemTool(workitem.AddItem, workitem.Add,
	"Add a piece of work that can be checked off. Returns its id. The run cannot be completed while an item is open.",
	`"title":{"type":"string","minLength":1,"description":"What is to be done, so concrete that anyone can see whether it is; at most 120 bytes."},`+
		itemPriority+`,"role":{"type":["string","null"],"description":"What its artifact is for: DELIVERABLE (for the user), WORKING (for yourself; default) or CONTROL (an audit)."},`+
		itemNotes+`,"id":{"type":["string","null"],"description":"An id of your own, such as report. Left out, one is made up."}`,
	`"title"`, "one call for each step of the plan, before the work on it begins"))
