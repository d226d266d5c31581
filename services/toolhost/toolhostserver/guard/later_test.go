package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatGitRunsLaterIsNamed, and left: steps of a rebase, and files that a hook calls.
func TestWhatGitRunsLaterIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".git/config": "[core]\n\tbare = false\n", ".git/HEAD": "", ".git/hooks/pre-commit": "#!/bin/sh\nexec sh \"tools/check.sh\" && ./run.py\n",
		"tools/check.sh": "check", "other.sh": "", ".git/rebase-merge/git-rebase-todo": "exec make\npick 1\n",
	})
	if err := os.Chmod(filepath.Join(dir, ".git/hooks/pre-commit"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := newGuard(t)
	if note := start(t, g, dir).End(); note != "" {
		t.Errorf("without a change: %s", note)
	}
	w := start(t, g, dir)
	const steps = "exec make\nx ./evil\npick 2\n"
	write(t, dir, map[string]string{"tools/check.sh": "evil", "run.py": "evil", "other.sh": "x", ".git/rebase-merge/git-rebase-todo": steps})
	note := w.End()
	for _, part := range []string{"x ./evil in .git/rebase-merge/git-rebase-todo", "tools/check.sh, which a hook of .git calls", "run.py, which"} {
		if !strings.Contains(note, part) {
			t.Errorf("no %q in %s", part, note)
		}
	}
	if strings.Contains(note, "make") || strings.Contains(note, "other.sh") {
		t.Errorf("what was there before is named: %s", note)
	}
	if read(t, filepath.Join(dir, ".git/rebase-merge/git-rebase-todo")) != steps {
		t.Error("the steps were put back")
	}
}
