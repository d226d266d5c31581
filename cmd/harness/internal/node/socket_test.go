package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSocketIsWhereOnlyTheUserCanBe: a directory that is too long, or that others can use, is passed
// over.
func TestSocketIsWhereOnlyTheUserCanBe(t *testing.T) {
	data := filepath.Join(t.TempDir(), strings.Repeat("x", 90))
	t.Setenv("XDG_RUNTIME_DIR", "")
	short, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	name := "harness-" + strconv.Itoa(os.Getuid())
	others := filepath.Join(short, "others", name)
	if err := os.MkdirAll(others, 0o755); err != nil {
		t.Fatal(err)
	}
	for temporary, want := range map[string]string{
		filepath.Join(short, "own"):                    filepath.Join(short, "own", name),
		filepath.Join(short, "others"):                 filepath.Join("/tmp", name),
		filepath.Join(short, strings.Repeat("y", 100)): filepath.Join("/tmp", name),
	} {
		t.Setenv("TMPDIR", temporary)
		path, err := socketPath(data, data)
		if err != nil || filepath.Dir(path) != want {
			t.Errorf("TMPDIR %s: %s, %v; want it in %s", temporary, path, err, want)
		}
	}
}
