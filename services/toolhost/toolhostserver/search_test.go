package toolhostserver

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// nest creates n folders d within each other, each with a file f.
func nest(t *testing.T, dir string, n int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	for range n {
		if err == nil {
			err = at.Mkdir("d", 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		below, openErr := at.OpenRoot("d")
		_ = at.Close()
		if at, err = below, openErr; err == nil {
			err = at.WriteFile("f", []byte("needle\n"), 0o600)
		}
	}
	_ = at.Close()
}

// TestSearchesAreBounded: of 3,000 folders within each other 100 are searched, and the result names
// the first that is not and how to search there, which then works.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	nest(t, h.dir, 3000)
	const deep = "[Not searched: folders more than 100 deep: d/d/"
	at := func(n int) string { return strings.Repeat("d/", n) + "f" }
	check := func(tool string, arguments map[string]any, want, not string, notes ...string) {
		t.Helper()
		got := "\n" + h.call(tool, arguments).GetResult()
		for _, text := range append(notes, "\n"+want) {
			if !strings.Contains(got, text) {
				t.Errorf("%s %v has no %q", tool, arguments, text)
			}
		}
		if strings.Contains(got, "\n"+not) {
			t.Errorf("%s %v: more than 100 folders", tool, arguments)
		}
	}
	check(tools.FindFiles, map[string]any{"pattern": "f"}, at(100)+"\n", at(101), deep, "begin the pattern with the names of folders")
	check(tools.SearchFiles, map[string]any{"pattern": "needle"}, at(100)+":1: needle\n", at(101), deep, "set path to a folder below")
	check(tools.SearchFiles, map[string]any{"pattern": "needle", "path": strings.Repeat("d/", 150)}, at(250)+":1: needle\n", at(251), deep)
	check(tools.FindFiles, map[string]any{"pattern": strings.Repeat("d/", 150) + "**/f"}, at(250)+"\n", at(251), deep)
}

// TestASearchEndsInTime: a search that takes too long returns what it has found, and where it stopped.
func TestASearchEndsInTime(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Limits: toolhost.Limits{WalkTime: time.Nanosecond}})
	h.write("a/b", "needle")
	for tool, want := range map[string]string{
		tools.FindFiles:   "No file matches.\n[Stopped after 1ns at a, what follows it was not searched; begin the pattern with the names of folders, such as a/b/**/*.go.]\n",
		tools.SearchFiles: "No match.\n[Stopped after 1ns at a, what follows it was not searched; set path to a folder below.]\n",
	} {
		if got := h.call(tool, map[string]any{"pattern": "b"}).GetResult(); got != want {
			t.Errorf("%s: %q", tool, got)
		}
	}
}
