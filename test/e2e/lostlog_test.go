package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestALostLogRunsNoCallTwice puts the bus of a parked run back to an earlier copy, while the ledger of the
// tool host has a later call. The same call gets its result and does not run; another one does not run before
// the model has read the calls that were made, and then a person decides.
func TestALostLogRunsNoCallTwice(t *testing.T) {
	t.Parallel()
	const (
		first  = "turns:\n  - {calls: [{name: ask_user, arguments: {question: 'First?'}}]}\n"
		second = "  - {calls: [{name: ask_user, arguments: {question: 'Second?'}}]}\n"
		one    = "  - {calls: [{name: run_command, arguments: {command: 'echo one >> out'}}]}\n"
		two    = "  - {calls: [{name: run_command, arguments: {command: 'echo two >> out'}}]}\n"
		done   = "  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n"
	)
	for name, test := range map[string]struct {
		script  string
		answers [][]string
		says    string
		out     string
	}{
		"the same call": {first + one + second + done, [][]string{{"answer", "r", "yes"}, {"answer", "r", "yes"}}, "ok run_command", "one\n"},
		"another call":  {first + two + two + done, [][]string{{"answer", "r", "yes"}, {"approve", "r"}}, "This call did not run", "one\ntwo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, dir, workspace := newHome(t), t.TempDir(), t.TempDir()
			finish := func(want int, args ...string) string {
				t.Helper()
				code, stdout, stderr := h.finish(args...)
				if code != want {
					t.Fatalf("%q exits %d, want %d\n%s%s", args, code, want, stdout, stderr)
				}
				return stdout + stderr
			}
			script := write(t, dir, "root.yaml", first+one+second+done)
			finish(4, "run", "--model", "script:"+script, "--workspace", workspace, "--allow", "run_command", "--run-id", "r", "work")
			finish(0, "daemon", "stop")
			bus, earlier := filepath.Join(h.data, "nats"), filepath.Join(dir, "nats")
			if err := os.CopyFS(earlier, os.DirFS(bus)); err != nil {
				t.Fatal(err)
			}
			finish(0, "answer", "r", "yes")
			finish(4, "watch", "r")

			finish(0, "daemon", "stop")
			if err := os.RemoveAll(bus); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(bus, os.DirFS(earlier)); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "root.yaml", test.script)
			finish(0, test.answers[0]...)
			if said := finish(4, "watch", "r"); !strings.Contains(said, test.says) {
				t.Errorf("without %q:\n%s", test.says, said)
			}
			if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != "one\n" {
				t.Errorf("before the second answer the commands wrote %q, %v", out, err)
			}
			finish(0, test.answers[1]...)
			finish(0, "watch", "r")
			if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != test.out {
				t.Errorf("the commands wrote %q, want %q, %v", out, test.out, err)
			}
		})
	}
}
