package workitem

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Names of the tools.
const (
	Add          = "work_item_add"
	Update       = "work_item_update"
	List         = "work_item_list"
	SetArtifact  = "work_item_set_artifact"
	FlagRevision = "work_item_flag_revision"
)

// IsTool says whether Apply knows a tool of that name.
func IsTool(name string) bool {
	switch name {
	case Add, Update, List, SetArtifact, FlagRevision:
		return true
	}
	return false
}

// Tools are the five tools with which an agent keeps its work items. The schemas
// name the values of priority, role and status in their descriptions only: what does
// not fit gets a default or an answer of Apply, not a refusal by schema.
func Tools() []*harnessv1.ToolSpec {
	const (
		id       = `"id":{"type":"string","minLength":1,"description":"The item's id, such as w2."}`
		notes    = `"notes":{"type":["string","null"],"description":"What is worth remembering, in at most 512 bytes."}`
		priority = `"priority":{"type":["string","null"],"description":"HIGH, MEDIUM (default) or LOW."}`
	)
	changing := func(name, description, properties, required, usage string) *harnessv1.ToolSpec {
		return &harnessv1.ToolSpec{
			Name: name, Description: description, Usage: usage,
			ParametersSchema: `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`,
			Origin:           harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
			Annotations: &harnessv1.ToolAnnotations{
				Durability: harnessv1.Durability_DURABILITY_ANCHORING, PreservedFields: []string{"id"},
			},
		}
	}
	list := changing(List, "List all work items in order, with status, priority, role and notes.", "", "", "")
	list.Annotations = &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_EPHEMERAL}
	return []*harnessv1.ToolSpec{
		changing(Add,
			"Add a piece of work that can be checked off. Returns its id. The run cannot be completed while an item is open.",
			`"title":{"type":"string","minLength":1,"description":"What is to be done, so concrete that anyone can see whether it is; at most 120 bytes."},`+
				priority+`,"role":{"type":["string","null"],"description":"What its artifact is going to be for: DELIVERABLE (for the user), WORKING (for yourself; default) or CONTROL (an audit)."},`+
				notes+`,"id":{"type":["string","null"],"description":"An id of your own, such as report. Left out, one is made up."}`,
			`"title"`, "one call for each step of the plan, before the work on it begins"),
		changing(Update,
			"Change the status of a work item, its notes, or both. Any change of status is allowed.",
			id+`,"status":{"type":["string","null"],"description":"PENDING, IN_PROGRESS, DONE or SKIPPED. Left out, it stays."},`+notes,
			`"id"`, "as soon as an item is begun, finished or given up, not all at the end"),
		list,
		changing(SetArtifact,
			"Store what a work item has produced, in place of what it had. The content is stored as it is: write nothing but the product itself.",
			id+`,"content":{"type":"string","description":"The product itself, whole, without a word about it. For role CONTROL a JSON object: {\"verdict\": \"pass\" or \"fail\", \"checks\": [{\"name\", \"result\": \"pass\" or \"fail\", \"detail\"}], \"summary\"}."},`+
				`"role":{"type":["string","null"],"description":"DELIVERABLE (handed to the user), WORKING (for yourself) or CONTROL (an audit). Left out, it stays that of the artifact before, else WORKING."}`,
			`"id","content"`, "for results that are texts; role DELIVERABLE for what the user is to get"),
		changing(FlagRevision,
			"Say that a work item has to be done again. Adds an item for the revision and returns its id; the first one stays open until that is finished.",
			id+`,"reason":{"type":"string","minLength":1,"description":"What is wrong and what has to change."}`,
			`"id","reason"`, "when an audit or a test finds a fault in an item"),
	}
}
