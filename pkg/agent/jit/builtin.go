package jit

import (
	"fmt"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// maxItem bounds the name of a work item in a text, in bytes.
const maxItem = 100

// builtInRule is a rule that every run has. It fires once.
type builtInRule struct {
	id    string
	holds func(Context) bool
	text  func(Context) string
}

// approachingLimit is the rule that fires once in each segment, because each segment has
// its own turns.
const approachingLimit = "approaching_turn_limit"

// builtIn has the built-in rules in the order of their evaluation.
var builtIn = []builtInRule{
	{
		id:    "no_reads_after_3_turns",
		holds: func(c Context) bool { return c.Turn >= 3 && c.Reads == 0 },
		text: func(c Context) string {
			return fmt.Sprintf("This is turn %d and you have not read anything yet. Before you decide or change anything, read what the task is about: "+
				"the files, data or pages that it depends on.", c.Turn)
		},
	},
	{
		id:    "serial_reads_suggest_parallel",
		holds: func(c Context) bool { return c.Turn >= 4 && c.Reads >= 6 && c.Explores == 0 },
		text: func(c Context) string {
			return fmt.Sprintf("You have read %d times without searching or listing once. Find the right places with a search first, "+
				"and put reads that do not depend on each other into one response, so that they run side by side.", c.Reads)
		},
	},
	{
		id:    "no_deliverable_after_many_reads",
		holds: func(c Context) bool { return c.Turn >= 8 && c.Reads >= 5 && c.Writes == 0 && c.ItemsOpen },
		text: func(c Context) string {
			return fmt.Sprintf("This is turn %d: you have read %d times and written nothing, and work items are open. You probably know enough to begin. "+
				"Take the most important open item and produce its result now; read more only for what is missing in it.", c.Turn, c.Reads)
		},
	},
	{
		id:    approachingLimit,
		holds: func(c Context) bool { return c.SegmentMax > 1 && uint64(c.SegmentTurn) >= uint64(c.SegmentMax)*4/5 },
		text: func(c Context) string {
			return fmt.Sprintf("This is turn %d of at most %d; after the last one the run is ended as it stands. Finish what matters most, begin nothing new, "+
				"check the result, and call work_complete in time.", c.SegmentTurn, c.SegmentMax)
		},
	},
	{
		id: "all_planning_no_execution",
		holds: func(c Context) bool {
			return c.Turn >= 3 && c.WorkItemsTotal > 0 && c.WorkItemsComplete == 0 && c.ItemAdds > 0 && c.Reads == 0
		},
		text: func(c Context) string {
			return fmt.Sprintf("You have planned: there %s. None is finished, and nothing has been read in %d turns. Stop adding items. "+
				"Take the first one, set it to IN_PROGRESS and do it.", items(c.WorkItemsTotal), c.Turn-1)
		},
	},
	{
		id:    "post_compaction_guidance",
		holds: func(c Context) bool { return c.Compactions >= 1 },
		text: func(c Context) string {
			next := "the next step of your plan"
			if c.NextItem != "" {
				next = "work item " + content.Cut(c.NextItem, maxItem)
			}
			return "Older parts of this conversation were shortened to make room. Keep to what was decided: continue with " + next +
				", and do not plan again. Read a detail that is missing now back by its reference, or from its source, instead of guessing. " +
				"Do not repeat work that is done."
		},
	},
	{
		id:    "repeated_compaction_warning",
		holds: func(c Context) bool { return c.Compactions >= 2 },
		text: func(c Context) string {
			return fmt.Sprintf("This conversation has been shortened %d times: it fills up faster than the work gets done. Read only the parts that you need, "+
				"keep results in files or artifacts instead of in messages, and finish what is open one by one.", c.Compactions)
		},
	},
}

// BuiltIn reports whether a rule is built in.
func BuiltIn(id string) bool {
	return slices.ContainsFunc(builtIn, func(r builtInRule) bool { return r.id == id })
}

func items(n uint32) string {
	if n == 1 {
		return "is 1 work item"
	}
	return fmt.Sprintf("are %d work items", n)
}
