package expr

import (
	"fmt"
	"testing"
)

func BenchmarkHolds(b *testing.B) {
	usage := map[string]uint32{"read_file": 3, "write_file": 2, "run_command": 9}
	for _, c := range []struct {
		name   string
		env    *Env
		source string
		vars   vars
	}{
		{"jit", Jit, `turn == 2 && writes > 0`, vars{"turn": uint32(2), "writes": uint32(1)}},
		{"usage", Jit, `turn > 2 && tool_usage["web_search"] == 0`, vars{"turn": uint32(3), "tool_usage": usage}},
		{"args", Tool, `tool == 'run_command' && args.command.contains('rm -rf')`,
			vars{"tool": "run_command", "args": vars{"command": "make test && rm -rf build"}}},
		{"regex", Tool, `args.command.matches('^git (push|fetch)')`, vars{"args": vars{"command": "git push origin main"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			program, err := c.env.Compile(c.source)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := program.Holds(c.vars); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFiftyJitRules(b *testing.B) {
	var programs []*Program
	for i := range 50 {
		program, err := Jit.Compile(fmt.Sprintf(`turn >= %d && reads > %d && (writes == 0 || tool_usage["run_command"] > %d)`, i%7, i%5, i))
		if err != nil {
			b.Fatal(err)
		}
		programs = append(programs, program)
	}
	given := vars{"turn": uint32(9), "reads": uint32(9), "writes": uint32(1), "tool_usage": map[string]uint32{"run_command": 7}}
	b.ReportAllocs()
	for b.Loop() {
		for _, program := range programs {
			if _, err := program.Holds(given); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// The longest evaluation: one that ends at maxCost.
func BenchmarkCostLimit(b *testing.B) {
	program, err := Tool.Compile(`args.list.exists(e, e == "needle")`)
	if err != nil {
		b.Fatal(err)
	}
	list := make([]any, 400_000)
	given := vars{"args": vars{"list": list}}
	for b.Loop() {
		if _, err := program.Holds(given); err == nil {
			b.Fatal("not broken off")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Tool.Compile(`tool == 'run_command' && args.command.contains('rm -rf')`); err != nil {
			b.Fatal(err)
		}
	}
}
