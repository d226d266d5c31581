package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
)

func TestMain(m *testing.M) {
	disktest.Enter()
	os.Exit(m.Run())
}

// TestAHomeWithoutRoom: a start that fails because the disk is full is reported so, in one
// line, whatever the reason that the bus gives.
func TestAHomeWithoutRoom(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	disk := disktest.New(t)
	disk.Fill()
	for _, dir := range []string{disk.Dir, filepath.Join(disk.Dir, "share", "harness")} {
		err := Serve(t.Context(), Config{Data: dir, Linger: time.Hour, Env: os.Getenv, Ready: func() { t.Error("it serves on a full disk") }})
		if err == nil {
			t.Fatal("it serves on a full disk")
		}
		if text := startError(dir, err).Error(); !strings.Contains(text, "has no room (") || !strings.Contains(text, "--data") || strings.Contains(text, "\n") {
			t.Errorf("%s: %s", dir, text)
		}
	}
	disk.Free()
	if text := startError(disk.Dir, os.ErrInvalid).Error(); strings.Contains(text, "room") {
		t.Errorf("with room: %s", text)
	}
}
