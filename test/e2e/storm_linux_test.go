package e2e

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	stormRuns = flag.Int("stormruns", 12, "runs of TestSystemRunsOutliveTheirProcesses")
	stormSeed = flag.Uint64("stormseed", 0, "of its random moments; 0: another one each time")
)

// stormKinds are the kinds of runs of the storm, as turns of a script; %s is the folder of the scripts.
var stormKinds = []struct{ name, agents, turns string }{
	{"agents", `agents:
  - {name: worker, description: W., instructions: W., model: "script:%[1]s/worker.yaml"}
  - {name: lead, description: L., instructions: L., model: "script:%[1]s/lead.yaml", agents: [{name: worker, description: W., instructions: W., model: "script:%[1]s/worker.yaml"}]}
`, "  - {calls: [{name: worker, arguments: {prompt: one, background: true}}, {name: lead, arguments: {prompt: two}}]}\n  - {calls: [{name: delegate, arguments: {tasks: [{id: t, title: T, agent: worker, prompt: three}]}}]}\n"},
	{"background", "", "  - {calls: [{name: run_command, arguments: {command: \"for i in 1 2 3 4 5; do echo $i; sleep 0.1; done\", background: true}}]}\n" +
		"  - {calls: [{name: command_output, arguments: {id: bg1, wait_seconds: 20}}]}\n  - {calls: [{name: run_command, arguments: {command: \"sleep 0.3\"}}]}\n"},
	{"question", "", "  - {calls: [{name: run_command, arguments: {command: \"sleep 0.2\"}}]}\n  - {calls: [{name: ask_user, arguments: {question: \"Which colour?\"}}]}\n  - {calls: [{name: run_command, arguments: {command: \"sleep 0.2\"}}]}\n"},
	{"approval", "tools: [{name: write_file, policy: ask}]\n", "  - {calls: [{name: run_command, arguments: {command: \"sleep 0.2\"}}]}\n  - {calls: [{name: write_file, arguments: {path: written, content: x}}]}\n  - {calls: [{name: run_command, arguments: {command: \"sleep 0.2\"}}]}\n"},
}

// TestSystemRunsOutliveTheirProcesses: each run has a fresh home and no flags for a place, and is followed on a
// terminal or in a pipe. Its background process, or a process below it, is killed at random moments.
// Every run ends, and its terminal continues by itself: no run is resumed by hand. A person's
// answer is given once.
func TestSystemRunsOutliveTheirProcesses(t *testing.T) {
	seed := *stormSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-stormseed %d", seed)
	for i := range *stormRuns {
		kind := stormKinds[i%len(stormKinds)]
		t.Run(fmt.Sprintf("%s-%d", kind.name, i), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			h, dir := newHome(t), t.TempDir()
			const done = "  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n"
			write(t, dir, "root.yaml", "turns:\n"+kind.turns+done)
			write(t, dir, "worker.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"sleep 0.3\"}}]}\n"+done)
			write(t, dir, "lead.yaml", "turns:\n  - {calls: [{name: worker, arguments: {prompt: below}}]}\n"+done)
			agents := kind.agents
			if strings.Contains(agents, "%") {
				agents = fmt.Sprintf(agents, dir)
			}
			agent := write(t, dir, "agent.yaml", fmt.Sprintf("model: script:%s/root.yaml\n", dir)+agents)
			args := []string{"run", "--workspace", t.TempDir(), "--agent", agent, "--allow", "run_command", "--run-id", "r", "work"}
			env := h.in(environment("TERM=xterm"))
			var killing sync.WaitGroup
			ended := make(chan struct{})
			killing.Go(func() { h.killAtRandom(random, ended) })
			if i/len(stormKinds)%2 == 0 {
				followOnTerminal(t, env, args)
			} else {
				h.followInPipe(t, kind.name, args)
			}
			close(ended)
			killing.Wait()
			if status := h.status("r"); status != "DONE" {
				t.Errorf("the run is %s", status)
			}
		})
	}
}

// followOnTerminal follows a run on a terminal, where the prompts are answered, and fails the test unless it ends
// with exit 0.
func followOnTerminal(t *testing.T, env, args []string) {
	t.Helper()
	x := onTerminal(t, env, args...)
	exited := make(chan error, 1)
	go func() { exited <- x.cmd.Wait() }()
	limit, tick, answered := time.After(deadline), time.NewTicker(20*time.Millisecond), 0
	defer tick.Stop()
	for {
		select {
		case err := <-exited:
			if err != nil {
				t.Errorf("on a terminal: %v\n%s", err, tail(x.shown()))
			}
			return
		case <-limit:
			t.Errorf("on a terminal: no end within %s\n%s", deadline, tail(x.shown()))
			return
		case <-tick.C:
		}
		screen := x.shown()
		for prompt, answer := range map[string]string{"Allow it? [y] once": "y", "Your answer (Enter to skip): ": "blue"} {
			if strings.Contains(screen[answered:], prompt) {
				answered = len(screen)
				fmt.Fprintln(x, answer)
			}
		}
	}
}

// followInPipe follows a run in a pipe. When it waits for a person, the command ends with exit 4, and another
// one answers and follows on.
func (h *home) followInPipe(t *testing.T, kind string, args []string) {
	t.Helper()
	code, stdout, stderr := h.finish(args...)
	answer := map[string][]string{"question": {"answer", "r", "blue", "--resume"}, "approval": {"approve", "r", "--resume"}}[kind]
	// The process can die under a verb that answers, which then stores nothing.
	for code == 4 && answer != nil || code == 1 && strings.Contains(stderr, "the gateway cannot be reached") {
		code, stdout, stderr = h.finish(answer...)
	}
	if code != 0 {
		t.Errorf("in a pipe: exit %d\n%s%s", code, tail(stdout), tail(stderr))
	}
}

// killAtRandom kills the background process, or one below it, up to three times.
func (h *home) killAtRandom(random *rand.Rand, ended <-chan struct{}) {
	for range 1 + random.IntN(3) {
		select {
		case <-time.After(time.Duration(150+random.IntN(1500)) * time.Millisecond):
		case <-ended:
			return
		}
		pid := h.pid()
		if pid == 0 {
			continue
		}
		if below := childrenOf(pid); len(below) > 0 && random.IntN(3) == 0 {
			pid = below[random.IntN(len(below))]
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			h.t.Error(err)
		}
	}
}

// childrenOf returns the processes that a process has started.
func childrenOf(pid int) []int {
	var children []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range tasks {
		raw, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
