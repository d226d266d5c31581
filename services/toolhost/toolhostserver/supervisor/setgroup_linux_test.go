package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRenamesOfOthersDoNotFailAWayUp: openat2 fails with EAGAIN for a path with .. while anything
// on the machine is renamed.
func TestRenamesOfOthersDoNotFailAWayUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		from, to := filepath.Join(dir, "other"), filepath.Join(dir, "renamed")
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := os.Rename(from, to); err != nil {
				t.Error(err)
				return
			}
			from, to = to, from
		}
	}()
	root, err := unix.Open("/", unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	start, err := unix.Open(filepath.Join(dir, "a"), unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		fd, errno := openFolder(root, start, "../b", 0)
		if errno != 0 {
			t.Errorf("attempt %d: %v", i, errno)
			break
		}
		_ = unix.Close(fd)
	}
	close(done)
	<-ended
	_, _ = unix.Close(start), unix.Close(root)
}
