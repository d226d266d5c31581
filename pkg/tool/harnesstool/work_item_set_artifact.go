package harnesstool

import "github.com/harnessmesh/harnessmesh/pkg/workitem"

var _ = register(40, product(workItemTool(workitem.StoreArtifact, workitem.SetArtifact,
	"Store what a work item has produced, in place of what it had. The content is stored as it is: write nothing but the product itself.",
	itemID+`,"content":{"type":"string","description":"The product itself, whole, without a word about it. For role CONTROL a JSON object: {\"verdict\": \"pass\" or \"fail\", \"checks\": [{\"name\", \"result\": \"pass\" or \"fail\", \"detail\"}], \"summary\"}."},`+
		`"role":{"type":["string","null"],"description":"DELIVERABLE (handed to the user), WORKING (for yourself) or CONTROL (an audit). Left out, it is the role that the item has."}`,
	`"id","content"`, "for results that are texts; role DELIVERABLE for what the user is to get")))

// product returns t with the mark that its arguments are the product of the agent.
func product(t *Tool) *Tool {
	t.Product = true
	return t
}
