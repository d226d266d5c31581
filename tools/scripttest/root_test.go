package scripttest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefusesUnnamedFilesAtTheRoot runs root.sh in a repository whose list names a.txt and pkg.
func TestRefusesUnnamedFilesAtTheRoot(t *testing.T) {
	script, err := filepath.Abs("../root.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		files []string
		want  string // the start of the only line; empty: the script exits 0
	}{
		{"all named", []string{"a.txt", "pkg/deep/b.txt"}, ""},
		{"ignored", []string{"a.txt", "pkg/b.txt", "out/c.txt"}, ""},
		{"a file that a flag wrote", []string{"a.txt", "pkg/b.txt", "-v"}, "-v: not in tools/root.txt"},
		{"a folder", []string{"a.txt", "pkg/b.txt", "more/c.txt"}, "more: not in tools/root.txt"},
		{"a missing name", []string{"pkg/b.txt"}, "tools/root.txt: a.txt: not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "tools/root.txt"), "# names\n.gitignore\na.txt\npkg\ntools\n")
			write(t, filepath.Join(dir, ".gitignore"), "/out/\n")
			for _, file := range c.files {
				write(t, filepath.Join(dir, file), "x\n")
			}
			if out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
				t.Fatalf("git init: %v\n%s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), script, dir).CombinedOutput()
			got := string(out)
			if (err != nil) != (c.want != "") || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > 1 {
				t.Errorf("got %v and %q, want %q", err, got, c.want)
			}
		})
	}
}
