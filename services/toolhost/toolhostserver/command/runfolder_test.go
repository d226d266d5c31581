package command

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFoldersOfRunsAreRemoved once no command of the run has started for a time, with what
// was made read-only in them. Commands that run at the same time share no overlay.
func TestFoldersOfRunsAreRemoved(t *testing.T) {
	t.Parallel()
	r := &runFolders{dir: t.TempDir()}
	first, release := r.take("run")
	second, releaseSecond := r.take("run")
	if first.home() != second.home() || first.overlays() == second.overlays() {
		t.Errorf("two commands have %+v and %+v", first, second)
	}
	kept := filepath.Join(first.home(), "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(first.home(), 0o500); err != nil {
		t.Fatal(err)
	}
	release()
	later := time.Now().Add(time.Minute)
	r.prune(later)
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the folder of a running command was removed: %v", err)
	}
	releaseSecond()
	r.prune(time.Now().Add(-time.Minute))
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the folder of a command that has just ended was removed: %v", err)
	}
	r.prune(later)
	if left, err := os.ReadDir(r.dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if again, _ := r.take("run"); again.overlay != 0 {
		t.Errorf("the next command has %+v", again)
	}
}
