package expr

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

func args(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

type vars = map[string]any

func TestExpressionReadsItsVariables(t *testing.T) {
	remove := vars{"tool": "run_command", "args": args(t, `{"command": "rm -rf /", "timeout": 5, "edits": [{"old": "a secret"}]}`)}
	used := vars{"turn": uint32(2), "writes": 1, "seconds_elapsed": 7.5, "tool_usage": map[string]uint32{"read_file": 3}}
	items := vars{"work_items": []map[string]any{
		{"id": "w1", "status": "DONE", "has_artifact": true},
		{"id": "w2", "status": "PENDING", "title": "Second"},
	}, "artifacts": map[string]string{"w1": "the report"}}
	for _, c := range []struct {
		env    *Env
		source string
		vars   vars
		want   bool
	}{
		{Jit, `turn == 2 && writes > 0`, used, true},
		{Jit, `turn == 2 && writes > 0`, nil, false},
		{Jit, `seconds_elapsed > 7 && seconds_elapsed < 8`, used, true},
		{Jit, `seconds_elapsed == 0.0`, nil, true},
		{Jit, `tool_usage.read_file == 3 && tool_usage["read_file"] == 3`, used, true},
		{Jit, `tool_usage["never"] == 0 && tool_usage.never < 1`, used, true},
		{Jit, `"read_file" in tool_usage && !("never" in tool_usage)`, used, true},
		{Jit, `has(tool_usage.read_file) && !has(tool_usage.never)`, used, true},
		{Jit, `tool_usage.size() == 1 && tool_usage.exists(k, tool_usage[k] > 2)`, used, true},
		{Jit, `tool_usage.size() == 0`, nil, true},
		{Tool, `tool == 'run_command' && args.command.contains('rm -rf')`, remove, true},
		{Tool, `args.command.matches('^rm\\b')`, remove, true},
		{Tool, `args.timeout == 5 && args.timeout > 4.5 && args["timeout"] < 6`, remove, true},
		{Tool, `args.edits.exists(e, e.old.contains("secret"))`, remove, true},
		{Tool, `has(args.command) && !has(args.path)`, remove, true},
		{Hook, `result.contains("x") || work_items.open > 0`, vars{"work_items": map[string]int{"open": 1}}, true},
		{Hook, `work_items.total == 0 && contract.unmet.size() == 0 && limit < 1`, nil, true},
		{Hook, `"R1" in contract.unmet && contract.met == 2`, vars{"contract": vars{"met": 2.0, "unmet": []any{"R1"}}}, true},
		{Hook, `called_work_complete && turn >= 3`, vars{"called_work_complete": true, "turn": 3}, true},
		{State, `work_items.exists(w, w.status == "DONE" && w.has_artifact)`, items, true},
		{State, `work_items.all(w, w.title != "")`, items, false},
		{State, `has(work_items[1].title) && !has(work_items[0].title)`, items, true},
		{State, `artifacts.w1.contains("report") && artifacts["w1"].size() == 10`, items, true},
		{State, `work_items.filter(w, w.status == "DONE").size() == 1`, items, true},
	} {
		program, err := c.env.Compile(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		if got, err := program.Holds(c.vars); err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.source, got, err, c.want)
		}
	}
}

func TestJSONNumbersCompareAsNumbers(t *testing.T) {
	program, err := Tool.Compile(`args.n == 5 && args.n < 5.5 && args.list[0] == 1.5`)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(`{"n": 5, "list": [1.5]}`))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if holds, err := program.Holds(vars{"args": m}); !holds || err != nil {
		t.Fatal(holds, err)
	}
}

func TestMissingFieldIsFalse(t *testing.T) {
	for _, source := range []string{
		`args.command.contains("x")`, `!args.command.contains("x")`, `args["command"] == "x"`, `args.a.b.c == 1`,
		`args.list.exists(e, e.nope == 1)`,
	} {
		program, err := Tool.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{`{}`, `{"a": {}, "list": [{}]}`} {
			if holds, err := program.Holds(vars{"args": args(t, given)}); holds || err != nil {
				t.Errorf("%s with %s: %v, %v", source, given, holds, err)
			}
		}
	}
	program, err := State.Compile(`artifacts.w1.contains("x")`)
	if err != nil {
		t.Fatal(err)
	}
	if holds, err := program.Holds(nil); holds || err != nil {
		t.Error(holds, err)
	}
}

func TestMissingFieldDoesNotHideAnAlternative(t *testing.T) {
	program, err := Tool.Compile(`args.command == "x" || tool == "a"`)
	if err != nil {
		t.Fatal(err)
	}
	if holds, err := program.Holds(vars{"tool": "a"}); !holds || err != nil {
		t.Error(holds, err)
	}
}

func TestValueOfAnotherTypeIsAnError(t *testing.T) {
	for _, c := range []struct {
		source string
		vars   vars
	}{
		{`args.command.contains("x")`, vars{"args": vars{"command": 1.0}}},
		{`args.command.contains("x")`, vars{"args": vars{"command": nil}}},
		{`tool == "x"`, vars{"tool": 7}},
		{`args.n / args.m == 1`, vars{"args": vars{"n": json.Number("1"), "m": json.Number("0")}}},
	} {
		program, err := Tool.Compile(c.source)
		if err != nil {
			t.Fatal(err)
		}
		if holds, err := program.Holds(c.vars); holds || err == nil {
			t.Errorf("%s: %v, %v", c.source, holds, err)
		}
	}
}

func TestCompileReportsPlaceAndReason(t *testing.T) {
	for _, c := range []struct {
		env          *Env
		source       string
		line, column int
		message      string
	}{
		{Jit, ``, 0, 0, "empty"},
		{Jit, " \n", 0, 0, "empty"},
		{Jit, strings.Repeat("a", maxSource+1), 0, 0, "4096"},
		{Jit, "turn > \xff", 0, 0, "UTF-8"},
		{Jit, `turns > 2`, 1, 1, "the variables are turn, max_turns"},
		{Jit, "turn > 1 &&\n  foo", 2, 3, "foo"},
		{Jit, `turn +`, 1, 7, "Syntax error"},
		{Jit, `turn`, 1, 1, "int"},
		{Jit, `turn == "x"`, 1, 6, "overload"},
		{Jit, `seconds_elapsed == 0`, 1, 17, "5.0"},
		{Jit, `args.x == 1`, 1, 1, "args"},
		{Tool, `args.force`, 1, 1, "== true"},
		{Tool, `args.p.matches("(")`, 1, 16, "regular expression"},
		{Tool, `args.p.matches("((a{100}){100}){100}")`, 1, 16, "regular expression"},
		{State, `work_items.all(w, w.staus == "DONE")`, 1, 20, "staus"},
		{Hook, `contract.mett > 1`, 1, 9, "mett"},
		{Tool, `args.all(a, args.all(b, a == b))`, 0, 0, "cost too much"},
		{Tool, `args.a.exists(a, args.b.exists(b, true))`, 0, 0, "cost too much"},
		{State, `work_items.all(a, work_items.all(b, work_items.all(c, a.id == c.id)))`, 0, 0, "cost too much"},
		{Jit, strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), 1, 0, ""},
	} {
		_, err := c.env.Compile(c.source)
		var at *fault.FieldError
		if !errors.As(err, &at) {
			t.Errorf("%.40q is accepted: %v", c.source, err)
			continue
		}
		if at.Line != c.line && c.message != "" || at.Column != c.column && c.message != "" || !strings.Contains(at.Message, c.message) {
			t.Errorf("%.40q: %d:%d %s; want %d:%d …%s…", c.source, at.Line, at.Column, at.Message, c.line, c.column, c.message)
		}
		if strings.Contains(at.Message, "\n") || len(at.Message) > 800 {
			t.Errorf("%.40q: the message is no short line: %q", c.source, at.Message)
		}
	}
}

func TestEvaluationEndsAtMaxCost(t *testing.T) {
	program, err := Tool.Compile(`args.list.exists(e, e == "needle")`)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 400_000)
	for i := range list {
		list[i] = "hay"
	}
	holds, err := program.Holds(vars{"args": vars{"list": list}})
	if holds || err == nil || !strings.Contains(err.Error(), "costs too much") {
		t.Errorf("%v, %v", holds, err)
	}
	if holds, err := program.Holds(vars{"args": vars{"list": []any{"needle"}}}); !holds || err != nil {
		t.Errorf("the next run: %v, %v", holds, err)
	}
}

func TestProgramsRunConcurrently(t *testing.T) {
	program, err := Jit.Compile(`tool_usage.exists(k, tool_usage[k] == turn)`)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				v := vars{"turn": i, "tool_usage": map[string]uint32{"a": 3}}
				if holds, err := program.Holds(v); err != nil || holds != (i == 3) {
					t.Errorf("%d: %v, %v", i, holds, err)
				}
			}
		})
	}
	all.Wait()
}

func TestToolUsageMayHaveAnyIntegerType(t *testing.T) {
	program, err := Jit.Compile(`tool_usage == {"a": 2, "b": 1} && tool_usage.a == 2 && tool_usage.size() == 2 && tool_usage.all(k, tool_usage[k] > 0)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []any{
		map[string]int{"a": 2, "b": 1}, map[string]int64{"a": 2, "b": 1}, map[string]uint32{"a": 2, "b": 1},
		map[string]uint64{"a": 2, "b": 1}, vars{"a": 2.0, "b": json.Number("1")},
	} {
		if holds, err := program.Holds(vars{"tool_usage": given}); !holds || err != nil {
			t.Errorf("%T: %v, %v", given, holds, err)
		}
	}
	if _, err := program.Holds(vars{"tool_usage": 3}); err == nil {
		t.Error("a number is taken for tool_usage")
	}
}
