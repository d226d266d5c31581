package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T) *Workspace {
	t.Helper()
	w, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestReplaceKeepsTheOldFile_WhenInterrupted(t *testing.T) {
	w := open(t)
	path := filepath.Join(w.Dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Replace(ctx, "file", "new", false); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("got %v, want ErrInterrupted", err)
	}
	content, err := os.ReadFile(path)
	names, _ := os.ReadDir(w.Dir)
	if err != nil || string(content) != "old" || len(names) != 1 {
		t.Fatalf("the file is %q, %v, in a folder with %v", content, err, names)
	}
}

func TestReplaceKeepsPermissionsAndReturnsTheName(t *testing.T) {
	w := open(t)
	for _, path := range []string{"a/b", w.Dir + "/a/b"} {
		name, err := w.Replace(context.Background(), path, path, true)
		if err != nil || name != "a/b" {
			t.Fatalf("Replace(%s) = %q, %v", path, name, err)
		}
		if err := os.Chmod(filepath.Join(w.Dir, "a/b"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(w.Dir, "a/b"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, %v", info, err)
	}
	if err := os.Chmod(filepath.Join(w.Dir, "a/b"), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Replace(context.Background(), "a/b", "x", false); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Fatalf("got %v", err)
	}
}

func TestResolveFollowsLinksInsideOnly(t *testing.T) {
	w := open(t)
	for link, target := range map[string]string{"in": "a/b", "out": "..", "loop": "loop", "abs": w.Dir + "/a"} {
		if err := os.Symlink(target, filepath.Join(w.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"a/b": "a/b", "in": "a/b", "abs/c": "a/c", "./x/../y": "y", ".": ".", w.Dir: ".", w.Dir + "/in/c": "a/b/c",
		"out": "", "loop": "", "..": "", "/etc": "", "in/../../..": "",
	} {
		got, err := w.Resolve(path)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("Resolve(%s) = %q, %v, want %q", path, got, err, want)
		}
	}
}

func TestDigestRejectsLargeFiles(t *testing.T) {
	w := open(t)
	if err := os.WriteFile(filepath.Join(w.Dir, "file"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := w.Digest(context.Background(), "file", 2, 5)
	if err != nil || string(d.Head) != "12" || d.Size != 5 || len(d.SHA256) != 64 {
		t.Fatalf("got %v, %v", d, err)
	}
	if _, err := w.Digest(context.Background(), "file", 2, 4); err == nil {
		t.Fatal("Digest accepts a file of 5 bytes at a limit of 4")
	}
}
