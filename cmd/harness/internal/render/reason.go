package render

import "strings"

// reasons are the kinds of reasons in words for people, where their names are no words. The kinds
// are those of docs/events.md.
var reasons = map[string]string{
	"agent_done":         "",
	"cancelled":          "",
	"failed":             "",
	"doom_loop":          "repeated calls",
	"stalled":            "no progress",
	"max_turns":          "turns used up",
	"context_exhausted":  "window too small",
	"poison":             "a step that ends workers",
	"illegal_transition": "broken record",
	"snapshot_too_large": "state too large",
}

// budgets are the budgets in words.
var budgets = map[string]string{
	"turns": "turns", "tool_calls": "calls of tools", "wall_clock": "time", "tokens": "tokens", "cost": "cost", "runs": "runs",
}

// ReasonWords returns the kind of a reason in a few words for people; empty where the status of the
// run has it.
func ReasonWords(kind string) string {
	if which, found := strings.CutPrefix(kind, "budget_exceeded:"); found {
		if words := budgets[which]; words != "" {
			which = words
		}
		return "budget used up: " + clean(which)
	}
	if words, found := reasons[kind]; found {
		return words
	}
	return clean(strings.ReplaceAll(kind, "_", " "))
}
