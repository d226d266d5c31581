package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesThatTheUserIncludesAreCompared: git reads them in each repository of the user, also if the workspace is none.
func TestFilesThatTheUserIncludesAreCompared(t *testing.T) {
	for _, repository := range []bool{false, true} {
		home, dir := t.TempDir(), canonical(t.TempDir())
		t.Setenv("HOME", home)
		t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "xdg"))
		t.Setenv("GIT_CONFIG_GLOBAL", "")
		write(t, home, map[string]string{
			".gitconfig":     "[include]\n\tpath = " + dir + "/team\n\tpath = " + dir + "/new/later\n\tpath = between\n",
			"between":        "[includeIf \"gitdir:/nowhere/\"]\n\tpath = " + dir + "/condition\n",
			"xdg/git/config": "[include]\n\tpath = " + dir + "/xdg\n\tpath = /proc/kmsg\n",
		})
		const former = "[user]\n\tname = me\n"
		files := []string{"team", "nested", "condition", "xdg"}
		for _, name := range files {
			write(t, dir, map[string]string{name: former})
		}
		write(t, dir, map[string]string{"team": former + "[include]\n\tpath = nested\n", "other": former})
		if repository {
			write(t, dir, map[string]string{".git/config": "", ".git/HEAD": ""})
		}
		g := newGuard(t)
		g.user = findUser
		w := start(t, g, dir)
		if !w.Holds(filepath.Join(dir, "team")) || w.Holds(filepath.Join(dir, "other")) {
			t.Error("the wrong files are held")
		}
		for _, name := range append(files, "new/later", "other") {
			text := former + "[core]\n\tfsmonitor = ./evil\n"
			if name == "team" {
				text += "[include]\n\tpath = nested\n"
			}
			write(t, dir, map[string]string{name: text})
		}
		note := w.End()
		for _, name := range append(files, "new/later") {
			data, _ := os.ReadFile(filepath.Join(dir, name))
			if strings.Contains(string(data), "evil") || !strings.Contains(note, "core.fsmonitor in "+name) {
				t.Errorf("repository %t: %s is %q, and the note %q", repository, name, data, note)
			}
		}
		if got := read(t, filepath.Join(dir, "other")); !strings.Contains(got, "evil") || strings.Contains(note, "other") {
			t.Errorf("another file was put back: %q, %q", got, note)
		}
		w = start(t, g, dir)
		if note := w.End(); note != "" {
			t.Errorf("a call that changes nothing: %q", note)
		}
	}
}
