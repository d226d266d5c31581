package view

import (
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Unchanged reports whether the plan shows a message unchanged, images and documents included.
// A message that the index does not have is not shown.
func (r *Rules) Unchanged(id uint64) bool {
	e := r.x.Entry(id)
	if e == nil {
		return false
	}
	action, _ := r.Action(e)
	return action == include && !r.MediaCleared(e)
}

// Shows returns a function that reports whether the view of a conversation under a plan, nil
// or not, shows a message unchanged. Its first call indexes the conversation, if the plan
// leaves anything out.
func Shows(c *conversation.Conversation, plan *harnessv1.CompactionPlan) func(id uint64) bool {
	if !Changes(plan) {
		return func(uint64) bool { return true }
	}
	var rules *Rules
	return func(id uint64) bool {
		if rules == nil {
			x := &Index{}
			x.Add(c)
			rules = NewRules(plan, x)
		}
		return rules.Unchanged(id)
	}
}

// Changes reports whether the view under a plan may leave anything out.
func Changes(plan *harnessv1.CompactionPlan) bool {
	return len(plan.GetWatermarks()) > 0 || plan.GetSummary() != nil
}
