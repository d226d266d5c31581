package toolhostserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// TestPlantsArePutBackWhileTheirCommandIsAlive, at each level: the command sees that itself.
func TestPlantsArePutBackWhileTheirCommandIsAlive(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	for _, level := range append(h.levels(), sandbox.Off) {
		t.Run(sandbox.Name(level), func(t *testing.T) {
			t.Parallel()
			h := &host{Server: h.Server, t: t, dir: t.TempDir()}
			h.repository()
			req := h.request(tools.RunCommand, "", map[string]any{"command": "git config core.fsmonitor ./evil; cp /bin/true .git/hooks/pre-push; " +
				"while grep -q evil .git/config || test -e .git/hooks/pre-push; do sleep 0.01; done; echo without"})
			req.Confinement, req.Timeout = &harnessv1.Confinement{Level: level}, seconds(30)
			expect(t, h.execute(req), done, false, "without", "core.fsmonitor in .git/config", "the hook .git/hooks/pre-push")
		})
	}
}

// TestWhatOthersChangeElsewhereStays in a repository that the workspace names and that a confined command cannot write.
func TestWhatOthersChangeElsewhereStays(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	levels := append(h.levels(), sandbox.Off)
	if len(levels) > 1 {
		levels = append(levels, sandbox.Auto)
	}
	for _, level := range levels {
		t.Run(sandbox.Name(level), func(t *testing.T) {
			t.Parallel()
			other := &host{Server: h.Server, t: t, dir: t.TempDir()}
			other.repository()
			was := other.read(".git/config")
			h := &host{Server: h.Server, t: t, dir: t.TempDir()}
			h.write(".git", "gitdir: "+other.dir+"/.git\n")
			pipe := filepath.Join(h.dir, "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			changed := make(chan error, 1)
			go func() {
				begun, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the command
				if err != nil {
					changed <- err
					return
				}
				defer func() { _ = begun.Close() }()
				changed <- os.WriteFile(filepath.Join(other.dir, ".git/config"), []byte(was+"[core]\n\tfsmonitor = ./own\n"), 0o600)
			}()
			req := h.request(tools.RunCommand, "", map[string]any{"command": "cat pipe"})
			req.Confinement = &harnessv1.Confinement{Level: level}
			expect(t, h.execute(req), done, false)
			if err := <-changed; err != nil {
				t.Fatal(err)
			}
			if stays := strings.Contains(other.read(".git/config"), "fsmonitor"); stays != (level != sandbox.Off) {
				t.Errorf("the configuration is %q", other.read(".git/config"))
			}
		})
	}
}

// TestABackgroundCommandReadsWhatWasPutBack in its output, while it is alive.
func TestABackgroundCommandReadsWhatWasPutBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	c := h.background("c", "git config core.fsmonitor ./evil; sleep "+uniqueSleep())
	expect(t, h.output(c.GetId(), 0, 30), done, false, "core.fsmonitor in .git/config", "[running;")
	if config := h.read(".git/config"); strings.Contains(config, "evil") {
		t.Errorf("the configuration is %q", config)
	}
	h.killAll(h.LedgerID())
}

// TestACommandThatPlantsAgainAndAgainIsStopped, and the result has the reason.
func TestACommandThatPlantsAgainAndAgainIsStopped(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	const line = "while :; do git config core.fsmonitor ./evil; sleep 0.01; done"
	expect(t, h.command(line), done, true, "[Stopped: what git runs programs by was changed 20 times while the command ran", "core.fsmonitor in .git/config")
	c := h.background("c", line)
	for h.backgroundStates(c)[0].GetRunning() {
		h.output(c.GetId(), 1<<20, 1) // waits for the end
	}
	if end := h.backgroundStates(c)[0].GetEnd(); !strings.Contains(end, "stopped: it changed what git runs programs by again and again") {
		t.Errorf("the end is %q", end)
	}
}

// TestSystemPlantsInALoop measures how often git runs a program for its user that background commands plant
// in a loop, and how long each plant is there.
func TestSystemPlantsInALoop(t *testing.T) {
	const statuses = 1000
	gitUser(t)
	h := newHost(t, Config{})
	for _, level := range append(h.levels(), sandbox.Off) {
		t.Run(sandbox.Name(level), func(t *testing.T) {
			h := &host{Server: h.Server, t: t, dir: t.TempDir()}
			trapped(t, h.dir, "printf '#!/bin/sh\\necho >> \"$(dirname \"$0\")/ran\"\\n' > evil")
			config := filepath.Join(h.dir, ".git/config")
			end, planted := make(chan struct{}), make(chan []time.Duration)
			go func() { // reads how long each plant is there
				var all []time.Duration
				since := time.Time{}
				for {
					select {
					case <-end:
						planted <- all
						return
					case <-time.After(100 * time.Microsecond):
					}
					text, err := os.ReadFile(config)
					switch there := strings.Contains(string(text), "evil"); {
					case err != nil:
					case there && since.IsZero():
						since = time.Now()
					case !there && !since.IsZero():
						all, since = append(all, time.Since(since)), time.Time{}
					}
				}
			}()
			stops, running, began := 0, make(chan struct{}), time.Now()
			statusEnd := make(chan struct{})
			go func() {
				defer close(running)
				for {
					req := h.request(tools.RunCommand, "", map[string]any{"command": "while :; do rm -f .git/config.lock; git config core.fsmonitor ./evil; done 2>/dev/null"})
					req.Confinement = &harnessv1.Confinement{Level: level}
					resp := h.execute(req)
					if !strings.Contains(resp.GetResult(), "[Stopped: what git") {
						t.Errorf("not stopped: %s", resp.GetResult())
					}
					if stops++; stops == 1 {
						ran, _ := os.ReadFile(filepath.Join(h.dir, "ran"))
						t.Logf("one command is stopped after %v; %d git status ran the program until then", time.Since(began).Round(time.Millisecond), len(ran))
					}
					select {
					case <-statusEnd:
						return
					default:
					}
				}
			}()
			for range statuses {
				cmd := exec.Command("git", "status", "--porcelain")
				cmd.Dir = h.dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			close(statusEnd)
			<-running
			close(end)
			all := <-planted
			ran, _ := os.ReadFile(filepath.Join(h.dir, "ran"))
			if len(all) == 0 || stops == 0 {
				t.Fatal("nothing was planted")
			}
			var sum time.Duration
			for _, d := range all {
				sum += d
			}
			slices.Sort(all)
			t.Logf("%d of %d git status ran the program; %d plants, %d commands stopped, in %v; a plant was there for %v (median), %v (95 %%), %v (most), %.1f %% of the time",
				len(ran), statuses, len(all), stops, time.Since(began).Round(time.Millisecond), all[len(all)/2].Round(10*time.Microsecond),
				all[len(all)*95/100].Round(10*time.Microsecond), all[len(all)-1].Round(10*time.Microsecond), 100*sum.Seconds()/time.Since(began).Seconds())
		})
	}
}
