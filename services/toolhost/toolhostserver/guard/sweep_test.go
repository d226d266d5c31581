package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const aliased = "[core]\n\tbare = false\n[alias]\n\tx = !mine\n"

// TestWhatIsBeyondTheSearchIsSwept after a command: its changes there are taken away, repositories that the user
// has there is left, also if the search comes there later.
func TestWhatIsBeyondTheSearchIsSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const deep = "a/b/c/d/e/f/"
	write(t, dir, map[string]string{
		".git/config": aliased, ".git/HEAD": "", deep + "kept/.git/config": aliased, deep + "kept/.git/HEAD": "",
		deep + "changed/.git/config": aliased, deep + "changed/.git/HEAD": "", deep + "bare/HEAD": "", deep + "bare/objects/": "", deep + "bare/refs/": "",
	})
	g := newGuard(t)
	g.finder.limit = 5
	<-time.After(50 * time.Millisecond) // so that a change has another time
	w := start(t, g, dir)
	write(t, dir, map[string]string{
		deep + "changed/.git/config": aliased + "[core]\n\tfsmonitor = evil\n", deep + "made/.git/config": "[core]\n\tfsmonitor = evil\n", deep + "made/.git/HEAD": "",
		deep + "bare/config": "[alias]\n\tx = !evil\n", deep + "kept/.git/HEAD": "ref: refs/heads/x\n", deep + "made/.git/hooks/pre-push": "evil",
	})
	note := w.End()
	for _, part := range []string{"core.fsmonitor in " + deep + "made/.git/config", "core.fsmonitor in " + deep + "changed/.git/config",
		"alias.x in " + deep + "bare/config", "the hook", "more than"} {
		if !strings.Contains(note, part) {
			t.Errorf("no %q in %s", part, note)
		}
	}
	for _, name := range []string{"changed/.git/config", "made/.git/config", "bare/config"} {
		if text := read(t, filepath.Join(dir, deep, name)); strings.Contains(text, "evil") {
			t.Errorf("%s: %s", name, text)
		}
	}
	// One that was prepared elsewhere is moved there.
	outside := t.TempDir()
	write(t, outside, map[string]string{"n/r/.git/config": aliased, "n/r/.git/HEAD": ""})
	<-time.After(50 * time.Millisecond)
	w = start(t, g, dir)
	if err := os.Rename(filepath.Join(outside, "n"), filepath.Join(dir, deep, "n")); err != nil {
		t.Fatal(err)
	}
	if note := w.End(); !strings.Contains(note, "alias.x in "+deep+"n/r/.git/config") {
		t.Errorf("what was moved is left: %s", note)
	}
	if got := read(t, filepath.Join(dir, deep, "kept/.git/config")); got != aliased {
		t.Errorf("what the user has is %q", got)
	}
	// The search comes to the repository of the user, because folders above it are gone.
	w = start(t, g, dir)
	g.finder.limit = 100
	if err := os.Rename(filepath.Join(dir, deep, "kept"), filepath.Join(dir, "a/kept")); err != nil {
		t.Fatal(err)
	}
	if note := w.End(); strings.Contains(note, "Put back") || read(t, filepath.Join(dir, "a/kept/.git/config")) != aliased {
		t.Errorf("what the user has is put back: %s", note)
	}
}

// TestSystemManyFolders measures a command in a workspace of 200,000 folders, and puts back what it plants
// in the last of them.
func TestSystemManyFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/config": aliased, ".git/HEAD": ""})
	for i := range 200 {
		for j := range 1000 {
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("d%03d/e%03d", i, j)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	g := newGuard(t)
	<-time.After(settled)
	start(t, g, dir).End() // reads all
	began := time.Now()
	w := start(t, g, dir)
	begun := time.Since(began)
	write(t, dir, map[string]string{"d199/e999/n/.git/config": "[core]\n\tfsmonitor = evil\n", "d199/e999/n/.git/HEAD": ""})
	began = time.Now()
	note := w.End()
	t.Logf("start %v, end %v", begun.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if !strings.Contains(note, "core.fsmonitor in d199/e999/n/.git/config") || !strings.Contains(note, "more than 100000 folders") {
		t.Errorf("the note is %q", note)
	}
}
