package expr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/agent/expr"
)

// TestDynamicValuesCostByTheirSize: a model may write arguments of any size, and no
// condition over them may run for long or use much memory.
func TestDynamicValuesCostByTheirSize(t *testing.T) {
	list := make([]any, 20_000)
	for i := range list {
		list[i] = float64(i)
	}
	args := map[string]any{"a": strings.Repeat("x", 786<<10), "l": list}
	for _, source := range []string{
		`args.l.map(x, args.a + args.a).size() == 0`,
		`args.l.map(x, bytes(args.a)).size() == 0`,
		`args.l.exists(x, args.l == args.l && x < 0.0)`,
		`args.l.exists(x, args.a.contains("y"))`,
	} {
		program, err := expr.Tool.Compile(source)
		if err != nil {
			continue // refused before it runs
		}
		began := time.Now()
		_, err = program.Holds(map[string]any{"tool": "t", "args": args})
		if err == nil || !strings.Contains(err.Error(), "too much") {
			t.Errorf("%s: %v", source, err)
		}
		t.Logf("%s: %v", source, time.Since(began))
	}
}
