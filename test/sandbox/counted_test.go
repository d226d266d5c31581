//go:build linux

package sandbox

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
)

// TestCommandsAreCountedAndFirstForMemory: at the level kernel the processes of a user have a
// bound that a command cannot raise, and the kernel kills commands before others if memory runs
// out.
func TestCommandsAreCountedAndFirstForMemory(t *testing.T) {
	t.Parallel()
	abi, full := levels(t)
	const counted, first = "processes of a user", "first for memory"
	for _, user := range usersHere() {
		h := startHost(t, user, "guards")
		read := func(level, line string, without ...string) string {
			got, err := h.do(job.Job{Level: level, ABI: abi, Line: line, LeaveOut: without})
			if err != nil {
				t.Fatalf("as %s at %s: %v", user, level, err)
			}
			return strings.TrimSpace(got.Output)
		}
		for _, level := range []string{"kernel", "full"} {
			if level == "full" && !full {
				continue
			}
			const score = "cat /proc/self/oom_score_adj"
			if with, without := read(level, score), read(level, score, first); with != "1000" || without == "1000" {
				t.Errorf("as %s at %s: score %s with the guard, %s without it", user, level, with, without)
			}
		}
		if user != "user" {
			continue
		}
		const tasks = `sleep 0.1; set -- $(grep '^Max processes' /proc/self/limits); test "$3" = "$4" && echo "$3"`
		with, without := read("kernel", tasks), read("kernel", tasks, counted)
		if with == "" || with == without {
			t.Errorf("at kernel: bound %q with the guard, %q without it", with, without)
		}
	}
}
