package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// liveCall is a call that is alive in a repository.
type liveCall struct {
	*Watch
	t     *testing.T
	dir   string
	notes chan string
	last  string // that was expected
}

const plainConfig = "[core]\n\tbare = false\n[include]\n\tpath = ../team\n"

// watchRepository starts a call, and returns when it is watched. Without rounds, only events report changes.
func watchRepository(t *testing.T, p pace) *liveCall {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".git/config": plainConfig, ".git/HEAD": "", ".git/hooks/pre-push": "mine", "team": "[core]\n\tfilemode = true\n",
		".git/modules/a/b/HEAD": "", ".git/modules/a/b/config": "[core]\n\tbare = false\n", ".git/worktrees/w/commondir": "../..\n", "n/.git": "gitdir: ../.git/worktrees/w\n",
	})
	g := newGuard(t)
	g.pace = p
	w := &liveCall{Watch: start(t, g, dir), t: t, dir: dir, notes: make(chan string, 100)}
	w.Notify(func(note string) { w.notes <- note })
	w.plant(".git/config", "[alias]\n\tst = !./evil\n")
	w.expect("alias.st in .git/config")
	return w
}

// plant puts a file there, as git does.
func (w *liveCall) plant(name, content string) {
	w.t.Helper()
	write(w.t, w.dir, map[string]string{name + ".lock": content})
	if err := os.Rename(filepath.Join(w.dir, name+".lock"), filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// exchange exchanges two files in one step, so that nothing is put back between two.
func (w *liveCall) exchange(one, other string) {
	w.t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(w.dir, one), unix.AT_FDCWD, filepath.Join(w.dir, other), unix.RENAME_EXCHANGE); err != nil {
		w.t.Fatal(err)
	}
}

// expect waits until something is put back while the call is alive.
func (w *liveCall) expect(part string) {
	w.t.Helper()
	select {
	case note := <-w.notes:
		w.last = note
		if !strings.Contains(note, part) {
			w.t.Errorf("no %q in %s", part, note)
		}
	case <-time.After(20 * time.Second):
		w.t.Fatalf("%s is not put back while the call is alive", part)
	}
}

// plants are changes while a call is alive, by what they do and what names them.
var plants = map[string]struct {
	plant func(w *liveCall)
	names string
}{
	"renamed":          {func(w *liveCall) { w.plant(".git/config", plainConfig+"[core]\n\tfsmonitor = x\n") }, "core.fsmonitor in .git/config"},
	"written":          {func(w *liveCall) { write(w.t, w.dir, map[string]string{".git/config": "[core]\n\tfsmonitor = x\n"}) }, "core.fsmonitor in .git/config"},
	"of the worktree":  {func(w *liveCall) { w.plant(".git/config.worktree", "[core]\n\tfsmonitor = x\n") }, "core.fsmonitor in .git/config.worktree"},
	"included":         {func(w *liveCall) { write(w.t, w.dir, map[string]string{"team": "[core]\n\tfsmonitor = x\n"}) }, "core.fsmonitor in team"},
	"hook":             {func(w *liveCall) { write(w.t, w.dir, map[string]string{".git/hooks/pre-commit": "x"}) }, "the hook .git/hooks/pre-commit"},
	"hook, executable": {func(w *liveCall) { _ = os.Chmod(filepath.Join(w.dir, ".git/hooks/pre-push"), 0o755) }, "the hook .git/hooks/pre-push"},
	"hooks": {func(w *liveCall) {
		write(w.t, w.dir, map[string]string{"h": "->../h"})
		w.exchange("h", ".git/hooks")
	}, "the hook .git/hooks"},
	"submodule": {func(w *liveCall) { w.plant(".git/modules/a/b/config", "[core]\n\tfsmonitor = x\n") }, "core.fsmonitor in .git/modules/a/b/config"},
	"new submodule": {func(w *liveCall) {
		write(w.t, w.dir, map[string]string{"m/HEAD": "", "m/config": "[core]\n\tfsmonitor = x\n"})
		_ = os.Rename(filepath.Join(w.dir, "m"), filepath.Join(w.dir, ".git/modules/a/m"))
	}, "core.fsmonitor in .git/modules/a/m/config"},
	"common folder": {func(w *liveCall) {
		outside := w.t.TempDir()
		write(w.t, outside, map[string]string{"objects/": "", "config": "[core]\n\tfsmonitor = x\n"})
		write(w.t, w.dir, map[string]string{".git/worktrees/w/commondir": outside + "\n"})
	}, "the file .git/worktrees/w/commondir"},
	"another git folder": {func(w *liveCall) {
		write(w.t, w.dir, map[string]string{"x/config": "[core]\n\tfsmonitor = x\n", "n/.git": "gitdir: ../x\n"})
	}, "core.fsmonitor in x/config"},
	"git folder moved": {func(w *liveCall) {
		write(w.t, w.dir, map[string]string{"x": "->x"})
		w.exchange("x", ".git")
		w.plant("x/config", "[core]\n\tfsmonitor = x\n")
	}, "core.fsmonitor in x/config"},
	"new repository": {func(w *liveCall) {
		outside := w.t.TempDir()
		write(w.t, outside, map[string]string{"r/.git/config": "[core]\n\tfsmonitor = x\n"})
		_ = os.Rename(filepath.Join(outside, "r"), filepath.Join(w.dir, "r"))
	}, "core.fsmonitor in r/.git/config"},
}

// TestChangesArePutBackWhileTheCallIsAlive, each by its event.
func TestChangesArePutBackWhileTheCallIsAlive(t *testing.T) {
	t.Parallel()
	for name, c := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watchRepository(t, pace{round: time.Hour})
			c.plant(w)
			w.expect(c.names)
			if note := w.End(); note != "" {
				t.Errorf("put back at the end: %s", note)
			}
		})
	}
}

// TestRoundsFindWhatNoEventTells: writes into the memory of a file, and repositories in folders
// that are not watched.
func TestRoundsFindWhatNoEventTells(t *testing.T) {
	t.Parallel()
	w := watchRepository(t, pace{round: 20 * time.Millisecond})
	f, err := os.OpenFile(filepath.Join(w.dir, ".git/config"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	const text = "[alias]\n\tst = !x\n"
	memory, err := unix.Mmap(int(f.Fd()), 0, len(plainConfig), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory, text+strings.Repeat("\n", len(plainConfig)-len(text)))
	w.expect("alias.st in .git/config")
	_ = unix.Munmap(memory)
	write(t, w.dir, map[string]string{"a/b/c/.git/config": "[core]\n\tfsmonitor = x\n"})
	w.expect("core.fsmonitor in a/b/c/.git/config")
	w.End()
}

// TestChangesArePutBackWithoutEvents, if the kernel refuses to report them.
func TestChangesArePutBackWithoutEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/config": plainConfig, ".git/HEAD": ""})
	g := newGuard(t)
	g.pace = pace{round: time.Hour, poll: 10 * time.Millisecond}
	g.notifier.refused = unix.EMFILE
	w := &liveCall{Watch: start(t, g, dir), t: t, dir: dir, notes: make(chan string, 100)}
	w.Notify(func(note string) { w.notes <- note })
	for range 3 {
		w.plant(".git/config", "[alias]\n\tst = !./evil\n")
		w.expect("alias.st in .git/config")
	}
	w.End()
}

// TestACallThatDoesNotStopIsStopped, after the last restoration that is permitted.
func TestACallThatDoesNotStopIsStopped(t *testing.T) {
	t.Parallel()
	w := watchRepository(t, pace{round: time.Hour})
	stopped := make(chan struct{})
	w.StopBy(func() { close(stopped) })
	for range maxRestores - 1 {
		select {
		case <-stopped:
			t.Fatal("stopped too early")
		default:
		}
		w.plant(".git/config", "[alias]\n\tst = !./evil\n")
		w.expect("alias.st in .git/config")
	}
	<-stopped
	if note := w.last + w.End(); !strings.Contains(note, "Stopped: what git runs programs by was changed 20 times") {
		t.Errorf("the note is %q", note)
	}
}

// TestApprovedChangesStayWhileAnotherCallIsAlive, from the approval on.
func TestApprovedChangesStayWhileAnotherCallIsAlive(t *testing.T) {
	t.Parallel()
	w := watchRepository(t, pace{round: time.Hour})
	approved, err := w.guard.StartWrite(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	approved.Accept(filepath.Join(w.dir, ".git/config"))
	w.plant(".git/config", "[core]\n\teditor = vi\n")
	write(t, w.dir, map[string]string{".git/hooks/pre-push": "other"})
	w.expect("the hook .git/hooks/pre-push")
	if note := approved.End() + w.End(); note != "" {
		t.Error(note)
	}
	if got := read(t, filepath.Join(w.dir, ".git/config")); !strings.Contains(got, "vi") {
		t.Errorf("put back: %s", got)
	}
}

// TestOrdinaryChangesAreLeftWhileTheCallIsAlive: keys that a call may change, files that a program is about
// to write, and pointers to a folder that does not exist yet.
func TestOrdinaryChangesAreLeftWhileTheCallIsAlive(t *testing.T) {
	t.Parallel()
	w := watchRepository(t, pace{round: time.Hour})
	config := filepath.Join(w.dir, ".git/config")
	w.plant(".git/config", plainConfig+"[user]\n\tname = x\n[remote \"o\"]\n\turl = /x\n\tfetch = +a:b\n")
	f, err := os.Create(config) // as an editor does
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.dir, map[string]string{".git/hooks/pre-push": "other"})
	w.expect("the hook .git/hooks/pre-push") // the changes before it have been compared
	if _, err := f.WriteString(plainConfig + "[user]\n\tname = y\n"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	write(t, w.dir, map[string]string{"m/.git": "gitdir: ../.git/modules/m\n", ".git/config.lock": "[alias]\n\tst = x\n"})
	write(t, w.dir, map[string]string{".git/hooks/pre-push": "other"})
	w.expect("the hook .git/hooks/pre-push")
	if got := read(t, config); !strings.Contains(got, "name = y") {
		t.Errorf("the configuration is %q", got)
	}
	for _, name := range []string{"m/.git", ".git/config.lock"} {
		if read(t, filepath.Join(w.dir, name)) == "" {
			t.Errorf("%s is gone", name)
		}
	}
	write(t, w.dir, map[string]string{".git/modules/m/HEAD": "", ".git/modules/m/config": "[core]\n\tworktree = ../../../m\n"})
	if note := w.End(); note != "" {
		t.Error(note)
	}
}

// TestSystemTimeOfAPlant measures how long a single plant is there, with the pace of a host.
func TestSystemTimeOfAPlant(t *testing.T) {
	var all []time.Duration
	for range 20 {
		w := watchRepository(t, pace{round: round})
		for range maxRestores / 2 {
			began := time.Now()
			w.plant(".git/config", "[alias]\n\tst = !./evil\n")
			for strings.Contains(read(t, filepath.Join(w.dir, ".git/config")), "evil") {
				continue
			}
			all = append(all, time.Since(began))
			w.expect("alias.st in .git/config")
		}
		w.End()
	}
	slices.Sort(all)
	t.Logf("%d plants: %v (median), %v (95 %%), %v (most)", len(all), all[len(all)/2].Round(10*time.Microsecond),
		all[len(all)*95/100].Round(10*time.Microsecond), all[len(all)-1].Round(10*time.Microsecond))
}
