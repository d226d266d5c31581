package jit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func rule(id, when, text string) *harnessv1.JitRule {
	return &harnessv1.JitRule{Id: id, When: when, Text: text}
}

func compile(t testing.TB, rules ...*harnessv1.JitRule) *jit.Rules {
	t.Helper()
	r, err := jit.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCustomRuleReadsTheState(t *testing.T) {
	c := jit.Context{
		Turn: 2, MaxTurns: 50, ToolUsage: map[string]uint32{"read_file": 3}, Reads: 3, Writes: 1, Explores: 4,
		WorkItemsComplete: 1, WorkItemsTotal: 2, Compactions: 0, FilesChanged: 5, Seconds: 61.5, ContextUsed: 700, ContextMax: 1000,
	}
	for when, want := range map[string]bool{
		`turn == 2 && writes > 0`:                           true,
		`turn == 3`:                                         false,
		`max_turns - turn == 48`:                            true,
		`tool_usage["read_file"] == 3`:                      true,
		`tool_usage.read_file >= 3`:                         true,
		`tool_usage["never_called"] == 0`:                   true,
		`reads == 3 && explores == 4`:                       true,
		`work_items_complete < work_items_total`:            true,
		`compaction_count > 0`:                              false,
		`context_used * 2 > context_max`:                    true,
		`context_used == 700 && context_max == 1000`:        true,
		`files_changed >= 5`:                                true,
		`seconds_elapsed > 60`:                              true,
		`seconds_elapsed > 61.5`:                            false,
		`tool_usage.exists(t, t.startsWith("read_"))`:       true,
		`tool_usage.all(t, tool_usage[t] > 3) || turn > 10`: false,
	} {
		fired, failed := compile(t, rule("mine", when, "Go on.")).Evaluate(c, never)
		if len(failed) > 0 {
			t.Errorf("%s: %v", when, failed)
		}
		if (len(fired) == 1 && fired[0].ID == "mine") != want {
			t.Errorf("%s: fired %v", when, fired)
		}
	}
}

func TestTextMayContainExpressions(t *testing.T) {
	r := compile(t, rule("mine", "true", "{{ files_changed }} files in {{ turn }} turns: {{ writes > 1 ? 'many' : 'few' }} writes."))
	fired, failed := r.Evaluate(jit.Context{Turn: 2, FilesChanged: 5, Writes: 2}, never)
	if len(failed) > 0 || len(fired) != 1 || fired[0].Text != "5 files in 2 turns: many writes." {
		t.Fatalf("fired %+v, failed %+v", fired, failed)
	}
}

func TestRuleFiresOnceByDefault(t *testing.T) {
	no, yes := false, true
	always := rule("always", "true", "Again.")
	always.Once = &no
	explicit := rule("explicit", "true", "Once.")
	explicit.Once = &yes
	r := compile(t, rule("once", "true", "Once."), always, explicit)
	seen, count := map[string]bool{}, map[string]int{}
	for turn := range uint32(3) {
		fired, _ := r.Evaluate(jit.Context{Turn: turn, Reads: 1}, func(id string) bool { return seen[id] })
		for _, f := range fired {
			count[f.ID]++
			if f.Once {
				seen[f.ID] = true
			}
		}
	}
	if count["once"] != 1 || count["always"] != 3 || count["explicit"] != 1 {
		t.Fatalf("fired %v", count)
	}
}

func TestCustomRulesFollowTheBuiltInOnes(t *testing.T) {
	r := compile(t, rule("z", "true", "First."), rule("a", "true", "Second."))
	fired, _ := r.Evaluate(jit.Context{Turn: 3, Compactions: 1}, never)
	if got := strings.Join(ids(fired), " "); got != "no_reads_after_3_turns post_compaction_guidance z a" {
		t.Fatalf("fired %s", got)
	}
}

func TestFailingRuleIsLeftOutAndReported(t *testing.T) {
	r := compile(t,
		rule("condition", "100 / writes > 3", "Never."),
		rule("text", "true", "{{ 100 / writes }} of it."),
		rule("nothing", "true", "{{ writes > 0 ? 'x' : ' ' }}"),
		rule("fine", "true", "Fine."))
	fired, failed := r.Evaluate(jit.Context{Turn: 1}, never)
	if len(fired) != 1 || fired[0].ID != "fine" {
		t.Fatalf("fired %v", fired)
	}
	want := []struct{ id, part string }{{"condition", "when: "}, {"text", "text: "}, {"nothing", "text: "}}
	if len(failed) != len(want) {
		t.Fatalf("failed %v", failed)
	}
	for i, f := range failed {
		if f.ID != want[i].id || !strings.HasPrefix(f.Error, want[i].part) || len(f.Error) > 256 || strings.Contains(f.Error, "\n") {
			t.Errorf("failed %+v, want %v", f, want[i])
		}
	}
}

func TestRenderedTextIsLimited(t *testing.T) {
	double := `"` + strings.Repeat("x", 3000) + `"`
	r := compile(t, rule("long", "true", "{{ "+double+" + (turn > 0 ? '' : 'y') }}{{ turn }}"))
	fired, _ := r.Evaluate(jit.Context{Turn: 1}, never)
	if len(fired) != 1 || len(fired[0].Text) != 3001 {
		t.Fatalf("fired %d", len(fired))
	}
	r = compile(t, rule("longer", "true", "{{ ["+double+"].map(s, s + s)[0] }}"))
	if fired, _ = r.Evaluate(jit.Context{Turn: 1}, never); len(fired) != 1 || len(fired[0].Text) != 4096 {
		t.Fatalf("fired %d with a text of %d bytes", len(fired), len(fired[0].Text))
	}
}

func TestNeedsFilesChanged(t *testing.T) {
	var none *jit.Rules
	if none.NeedsFilesChanged() || compile(t, rule("a", "turn > 1", "x")).NeedsFilesChanged() {
		t.Error("no rule needs it")
	}
	if !compile(t, rule("a", "files_changed > 1", "x")).NeedsFilesChanged() || !compile(t, rule("a", "true", "{{ files_changed }}")).NeedsFilesChanged() {
		t.Error("needed, and not said")
	}
}

func TestCompileReportsThePlaceInARule(t *testing.T) {
	fine := rule("fine", "true", "x")
	many := make([]*harnessv1.JitRule, 65)
	for i := range many {
		many[i] = rule(fmt.Sprint("r", i), "true", "x")
	}
	compile(t, many[:64]...)
	type rules = []*harnessv1.JitRule
	for name, c := range map[string]struct {
		rules        rules
		field        string
		message      string
		line, column int
	}{
		"no id":            {rules{rule("", "true", "x")}, "jit[0].id", "is required", 0, 0},
		"id of others":     {rules{fine, rule("a b", "true", "x")}, "jit[1].id", "does not match", 0, 0},
		"long id":          {rules{rule(strings.Repeat("x", 65), "true", "x")}, "jit[0].id", "does not match", 0, 0},
		"the same id":      {rules{rule("b", "true", "x"), fine, rule("b", "true", "x")}, "jit[2].id", "jit[0]", 0, 0},
		"built-in id":      {rules{rule("approaching_turn_limit", "true", "x")}, "jit[0].id", "built-in", 0, 0},
		"no text":          {rules{rule("a", "true", " \n")}, "jit[0].text", "is required", 0, 0},
		"long text":        {rules{rule("a", "true", strings.Repeat("x", 4097))}, "jit[0].text", "4096", 0, 0},
		"no condition":     {rules{rule("a", "", "x")}, "jit[0].when", "empty", 0, 0},
		"no bool":          {rules{fine, rule("a", "turn + 1", "x")}, "jit[1].when", "int", 1, 1},
		"unknown variable": {rules{rule("a", "turn > 1 &&\n  turns > 2", "x")}, "jit[0].when", "turns", 2, 3},
		"no CEL":           {rules{rule("a", "turn >", "x")}, "jit[0].when", "", 1, 7},
		"too costly":       {rules{rule("a", strings.Repeat("tool_usage.exists(a, ", 8)+"true"+strings.Repeat(")", 8), "x")}, "jit[0].when", "cost", 0, 0},
		"bad template":     {rules{rule("a", "true", "one\ntwo {{ turns }}")}, "jit[0].text", "turns", 2, 8},
		"open template":    {rules{rule("a", "true", "one {{ turn")}, "jit[0].text", "}}", 1, 5},
		"too many":         {many, "jit", "65", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := jit.Compile(c.rules)
			var wrong *fault.FieldError
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if wrong.Field != c.field || wrong.Line != c.line || wrong.Column != c.column || !strings.Contains(wrong.Message, c.message) {
				t.Fatalf("got %s at %d:%d: %s", wrong.Field, wrong.Line, wrong.Column, wrong.Message)
			}
			if !strings.HasPrefix(wrong.Error(), c.field) || strings.Contains(wrong.Error(), "\n") {
				t.Fatalf("error %q", wrong.Error())
			}
		})
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("test-first", "turn == 2 && writes > 0", "Run the tests.")
	f.Add("x", `tool_usage["a"] > 1`, "{{ turn }}{{")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, id, when, text string) {
		r, err := jit.Compile([]*harnessv1.JitRule{{Id: id, When: when, Text: text}})
		if err != nil {
			var wrong *fault.FieldError
			if !errors.As(err, &wrong) || wrong.Message == "" || !strings.HasPrefix(wrong.Field, "jit[0].") {
				t.Fatalf("%q: %v", when, err)
			}
			return
		}
		fired, failed := r.Evaluate(jit.Context{Turn: 1, Reads: 1, ToolUsage: map[string]uint32{"a": 2}}, never)
		if len(fired)+len(failed) > 1 {
			t.Fatalf("fired %v, failed %v", fired, failed)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	rules := make([]*harnessv1.JitRule, 50)
	for i := range rules {
		rules[i] = rule(fmt.Sprint("r", i), fmt.Sprintf("turn > %d && (writes == 0 || tool_usage['read_file'] > 100) && seconds_elapsed > 10", i), "Text {{ turn }}.")
	}
	r := compile(b, rules...)
	c := jit.Context{Turn: 39, MaxTurns: 50, ToolUsage: map[string]uint32{"read_file": 30, "write_file": 4}, Reads: 30, Writes: 4, Explores: 2, Seconds: 99}
	for b.Loop() {
		if fired, failed := r.Evaluate(c, never); len(fired) != 0 || len(failed) != 0 {
			b.Fatal(fired, failed)
		}
	}
}
