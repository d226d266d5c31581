package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// appending is a script of turns that each append two lines to a file, with
// time between them in which the process can die.
func appending(t *testing.T, turns int) (workspace, script string) {
	workspace = t.TempDir()
	var b strings.Builder
	b.WriteString("turns:\n")
	for i := 1; i <= turns; i++ {
		fmt.Fprintf(&b, "  - {text: Step %d., calls: [{name: run_command, arguments: {command: 'echo begin-%d >> log; sleep 0.15; echo end-%d >> log'}}]}\n", i, i, i)
	}
	b.WriteString("  - {calls: [{name: work_complete, arguments: {summary: appended}}]}\n")
	return workspace, write(t, t.TempDir(), "script.yaml", b.String())
}

// TestKilledRunsAreResumed kills the whole process at ten different moments.
// The resumed run completes, and no call's line is there twice.
func TestKilledRunsAreResumed(t *testing.T) {
	const turns = 5
	moments := []struct {
		kind string
		turn float64
	}{
		{"session.start", 0}, {"plan.commit", 0}, {"step.start", 1}, {"model.response", 1}, {"tool.call", 1},
		{"tool.result", 1}, {"step.end", 2}, {"tool.call", 3}, {"step.start", 4}, {"tool.call", 5},
	}
	for _, m := range moments {
		t.Run(fmt.Sprintf("%s-%v", m.kind, m.turn), func(t *testing.T) {
			t.Parallel()
			workspace, script := appending(t, turns)
			home := newHome(t)
			p := home.start(environment(), "run", "--run-id", "r1", "--workspace", workspace, "--model", "script:"+script,
				"--allow", "run_command", "--output", "jsonl", "append")
			p.until(func(e map[string]any) bool { return e["type"] == m.kind && e["turn_number"] == m.turn })
			home.crash(p)

			code, stdout, _ := home.finish("resume", "--output", "json", "r1")
			if code != 0 {
				t.Fatalf("resume: exit %d", code)
			}
			result := object(t, stdout)
			if result["status"] != "DONE" || result["accepted"] != true || result["summary"] != "appended" {
				t.Errorf("result: %v", result)
			}
			content, err := os.ReadFile(filepath.Join(workspace, "log"))
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for _, line := range strings.Fields(string(content)) {
				if seen[line]++; seen[line] > 1 {
					t.Errorf("line %q is there twice:\n%s", line, content)
				}
			}
			// Every call ran, but one may be cut short: the one that the crash met, or the one that had
			// begun when the next process interrupted the run. The model got its end then.
			var missing []int
			for i := 1; i <= turns; i++ {
				if seen[fmt.Sprintf("end-%d", i)] != 1 {
					missing = append(missing, i)
				}
			}
			_, history, _ := home.finish("watch", "--output", "jsonl", "r1")
			repairs := strings.Count(history, `"type":"repair"`) + strings.Count(history, "was interrupted before this call had run")
			for line := range strings.Lines(history) {
				if strings.Contains(line, `"type":"tool.error"`) || strings.Contains(line, "this call was killed") {
					repairs++
				}
			}
			if len(missing) > 1 || len(missing) > repairs {
				t.Errorf("calls %v did not run, %d were repaired:\n%s", missing, repairs, content)
			}
		})
	}
}

// TestDataDirectoryHasOneHolder refuses a second run by name, and lets the
// other verbs work at the same time.
func TestDataDirectoryHasOneHolder(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	script := write(t, t.TempDir(), "script.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: sleep 60}}]}\n")
	data := t.TempDir()
	args := []string{"run", "--data", data, "--workspace", workspace, "--model", "script:" + script, "--allow", "run_command", "--output", "jsonl"}
	first := start(t, environment(), append(args, "--run-id", "first", "sleep")...)
	first.until(is("tool.call"))

	code, _, stderr := finish(t, append(args, "again")...)
	if pid := fmt.Sprint(first.cmd.Process.Pid); code != 1 || !strings.Contains(stderr, pid) || strings.Count(strings.TrimSpace(stderr), "\n") != 0 {
		t.Errorf("second run: exit %d, want 1 and one line with pid %s:\n%s", code, pid, stderr)
	}
	code, stdout, _ := finish(t, "list", "--data", data, "--output", "json")
	if code != 0 || !strings.Contains(stdout, `"run_id":"first"`) && !strings.Contains(stdout, `"run_id": "first"`) {
		t.Errorf("list: exit %d\n%s", code, stdout)
	}
	watcher := start(t, environment(), "watch", "--data", data, "--output", "jsonl", "first")
	watcher.until(is("tool.call"))
	if code, _, stderr := finish(t, "interrupt", "--data", data, "first"); code != 0 {
		t.Errorf("interrupt: exit %d\n%s", code, stderr)
	}
	watcher.until(is("run.interrupted"))
	for name, p := range map[string]*process{"first": first, "watch": watcher} {
		if code, _, _ := p.wait(); code != 4 {
			t.Errorf("%s: exit %d, want 4", name, code)
		}
	}
}
