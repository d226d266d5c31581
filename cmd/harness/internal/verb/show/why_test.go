package show_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestShowSaysFirstWhyARunEnded runs scripts that repeat a call, repeat two calls in turn, and fail.
func TestShowSaysFirstWhyARunEnded(t *testing.T) {
	t.Parallel()
	one := "  - calls: [{name: list_directory, arguments: {path: nowhere}}]\n"
	two := "  - calls: [{name: read_file, arguments: {path: a, limit: 1}}]\n  - calls: [{name: read_file, arguments: {limit: 1, path: b}}]\n"
	for name, c := range map[string]struct {
		script string
		want   []string
		never  string
	}{
		"one call": {"turns:\n" + strings.Repeat(one, 12), []string{
			"STALLED: The agent repeated the same calls", "it repeated:", "  list_directory path=nowhere (6 times)", "    nowhere", "to continue: harness run --continue r --data ", "run         default/r",
		}, "doom_loop"},
		"two calls": {"turns:\n" + strings.Repeat(two, 12), []string{
			"STALLED: ", "it repeated:", "  read_file limit=1 path=b (3 times)", "  read_file path=a limit=1 (3 times)", "to continue: harness run --continue r --data ", "run         default/r",
		}, "doom_loop"},
		"an error": {"turns:\n" + one + "  - error: {status: 400}\n", []string{
			"FAILED: ", "its last call: list_directory path=nowhere", "    nowhere", "to continue", "harness ", "run         default/r",
		}, "it repeated"},
		"a question": {"turns:\n  - calls: [{name: ask_user, arguments: {question: Which, options: [red, blue]}}]\n", []string{
			"PARKED: ", "Which", "[2] blue", "harness answer r ", "run         default/r",
		}, "it repeated"},
		"a turn that is not allowed": {"turns:\n" + one + one, []string{"PARKED: The budget of ", "to continue: harness resume r --max-tool-calls ", "run         default/r"}, "it repeated"},
		"no acceptance": {"turns:\n" + strings.Repeat("  - text: Done.\n", 8), []string{
			"DONE (not accepted): ", "to continue: harness run --continue r --data ", "run         default/r",
		}, "work_complete_not"},
		"a run that is done": {harnesstest.Finishes, []string{"run         default/r"}, "to continue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := harnesstest.NewPlace(t, c.script)
			flags := []string{"--run-id", "r", "go"}
			if name == "a turn that is not allowed" {
				flags = append([]string{"--max-tool-calls", "1"}, flags...)
			}
			harnesstest.Call(t, nil, "", p.Run(flags...)...)
			got := harnesstest.Call(t, nil, "", "show", "r", "--data", p.Data)
			rest := got.Out
			if !strings.HasPrefix(rest, c.want[0]) || strings.Contains(rest, c.never) {
				t.Errorf("%+v", got)
			}
			for _, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q does not follow in:\n%s", want, got.Out)
				}
				rest = after
			}
		})
	}
}
