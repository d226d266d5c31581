package jit_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
)

// order has the ids of the built-in rules in their order.
var order = []string{
	"no_reads_after_3_turns", "serial_reads_suggest_parallel", "no_deliverable_after_many_reads", "approaching_turn_limit",
	"all_planning_no_execution", "post_compaction_guidance", "repeated_compaction_warning",
}

func never(string) bool { return false }

func ids(fired []jit.Instruction) []string {
	var all []string
	for _, f := range fired {
		all = append(all, f.ID)
	}
	return all
}

func TestBuiltInRuleFiresAtItsLimit(t *testing.T) {
	type c = jit.Context
	cases := map[string]struct{ fires, not []c }{
		"no_reads_after_3_turns": {
			fires: []c{{Turn: 3}, {Turn: 9, Writes: 2, Explores: 1}},
			not:   []c{{Turn: 2}, {Turn: 3, Reads: 1}},
		},
		"serial_reads_suggest_parallel": {
			fires: []c{{Turn: 4, Reads: 6}},
			not:   []c{{Turn: 3, Reads: 6}, {Turn: 4, Reads: 5}, {Turn: 4, Reads: 6, Explores: 1}},
		},
		"no_deliverable_after_many_reads": {
			fires: []c{{Turn: 8, Reads: 5, ItemsOpen: true}},
			not: []c{
				{Turn: 7, Reads: 5, ItemsOpen: true}, {Turn: 8, Reads: 4, ItemsOpen: true},
				{Turn: 8, Reads: 5, ItemsOpen: true, Writes: 1}, {Turn: 8, Reads: 5},
			},
		},
		"approaching_turn_limit": {
			fires: []c{{Turn: 40, MaxTurns: 50}, {Turn: 7, MaxTurns: 9}, {Turn: 1, MaxTurns: 2}, {Turn: 3, MaxTurns: 4}, {Turn: 4294967295, MaxTurns: 4294967295}},
			not:   []c{{Turn: 39, MaxTurns: 50}, {Turn: 6, MaxTurns: 9}, {Turn: 1, MaxTurns: 1}, {Turn: 2, MaxTurns: 4}, {Turn: 5}},
		},
		"all_planning_no_execution": {
			fires: []c{{Turn: 3, WorkItemsTotal: 1, ItemAdds: 1}},
			not: []c{
				{Turn: 2, WorkItemsTotal: 1, ItemAdds: 1}, {Turn: 3, WorkItemsTotal: 0, ItemAdds: 1}, {Turn: 3, WorkItemsTotal: 1, ItemAdds: 0},
				{Turn: 3, WorkItemsTotal: 2, WorkItemsComplete: 1, ItemAdds: 1}, {Turn: 3, WorkItemsTotal: 1, ItemAdds: 1, Reads: 1},
			},
		},
		"post_compaction_guidance":    {fires: []c{{Compactions: 1}, {Compactions: 5}}, not: []c{{}}},
		"repeated_compaction_warning": {fires: []c{{Compactions: 2}}, not: []c{{}, {Compactions: 1}}},
	}
	for _, id := range jit.BuiltInIDs() {
		if len(cases[id].fires) == 0 || len(cases[id].not) == 0 {
			t.Errorf("%s has no case here of a context in which it fires, and of one in which it does not", id)
		}
	}
	for id, contexts := range cases {
		t.Run(id, func(t *testing.T) {
			var none *jit.Rules
			for _, context := range contexts.fires {
				if fired, _ := none.Evaluate(context, never); !slices.Contains(ids(fired), id) {
					t.Errorf("does not fire: %+v", context)
				}
				if fired, _ := none.Evaluate(context, func(f string) bool { return f == id }); slices.Contains(ids(fired), id) {
					t.Errorf("fires a second time: %+v", context)
				}
			}
			for _, context := range contexts.not {
				if fired, _ := none.Evaluate(context, never); slices.Contains(ids(fired), id) {
					t.Errorf("fires: %+v", context)
				}
			}
		})
	}
}

// TestEachBuiltInRuleIsDocumented: docs/jit.md has the rules in the order of their evaluation.
func TestEachBuiltInRuleIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/jit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| id | fires when |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1])
	}
	if !slices.Equal(rows, jit.BuiltInIDs()) || !slices.Equal(order, jit.BuiltInIDs()) {
		t.Errorf("the rules are %v, docs/jit.md has %v, and this file the order %v", jit.BuiltInIDs(), rows, order)
	}
}

func TestBuiltInRulesFireInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Uint32Range(0, 12)
		c := jit.Context{
			Turn: small.Draw(t, "turn"), MaxTurns: small.Draw(t, "max"), Reads: small.Draw(t, "reads"), Writes: small.Draw(t, "writes"),
			Explores: small.Draw(t, "explores"), WorkItemsTotal: small.Draw(t, "items"), ItemAdds: small.Draw(t, "adds"),
			Compactions: small.Draw(t, "compactions"), ItemsOpen: rapid.Bool().Draw(t, "open"), NextItem: rapid.StringN(0, 300, -1).Filter(func(s string) bool { return !strings.Contains(s, "%!") }).Draw(t, "next"), // fmt marks a wrong verb with it
		}
		var none *jit.Rules
		fired, failed := none.Evaluate(c, never)
		again, _ := none.Evaluate(c, never)
		if len(failed) > 0 || !slices.Equal(fired, again) {
			t.Fatalf("failed %v, %v and then %v", failed, fired, again)
		}
		last := -1
		for _, f := range fired {
			at := slices.Index(order, f.ID)
			if at <= last {
				t.Fatalf("%v are not in the order %v", ids(fired), order)
			}
			last = at
			if !f.Once || len(f.Text) < 40 || len(f.Text) > 400 || strings.Contains(f.Text, "%!") {
				t.Fatalf("%+v", f)
			}
		}
	})
}

func TestBuiltInTextHasTheNumbers(t *testing.T) {
	var none *jit.Rules
	fired, _ := none.Evaluate(jit.Context{Turn: 41, MaxTurns: 51, Reads: 17, ItemsOpen: true, Compactions: 3}, never)
	want := map[string]string{
		"serial_reads_suggest_parallel": "17 times", "no_deliverable_after_many_reads": "turn 41", "approaching_turn_limit": "turn 41 of at most 51",
		"post_compaction_guidance": "", "repeated_compaction_warning": "3 times",
	}
	if len(fired) != len(want) {
		t.Fatalf("fired %v", ids(fired))
	}
	for _, f := range fired {
		if figure, known := want[f.ID]; !known || !strings.Contains(f.Text, figure) {
			t.Errorf("%s lacks %q: %s", f.ID, figure, f.Text)
		}
	}
}

// TestPostCompactionGuidanceNamesTheNextItem: the agent continues with it, and does not plan
// again.
func TestPostCompactionGuidanceNamesTheNextItem(t *testing.T) {
	for next, want := range map[string]string{
		"":                    "continue with the next step of your plan, and do not plan again",
		"w2 (Write the test)": "continue with work item w2 (Write the test), and do not plan again",
	} {
		var none *jit.Rules
		fired, _ := none.Evaluate(jit.Context{Turn: 1, Reads: 1, Compactions: 1, NextItem: next}, never)
		if len(fired) != 1 || !strings.Contains(fired[0].Text, want) {
			t.Errorf("%q: %v", next, fired)
		}
	}
}
