package places_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPlaceIsReadAgainIfItsIdentityDiffers, also if its times and size were put back, and if only the target of
// a link has changed.
func TestPlaceIsReadAgainIfItsIdentityDiffers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, target := filepath.Join(dir, "AGENTS.md"), filepath.Join(dir, "target")
	write(t, file, "one")
	write(t, target, "one")
	if err := os.Symlink("target", filepath.Join(dir, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	long := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	p := places.New(trust.Open(t.TempDir()), slog.New(slog.DiscardHandler))
	p.SetSettled()
	watch := p.StartAt(dir, guard.Places{})
	later(t)
	write(t, file, "two")
	write(t, target, "two or more")
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	if text := watch.Finish(guard.Places{}, nil, false).Text(); !strings.Contains(text, "AGENTS.md, CLAUDE.md") {
		t.Errorf("got %q", text)
	}
}

// TestChangesOfLargePlacesAreSeen: of a place whose content is not compared, whatever its size and the times that programs can set.
func TestChangesOfLargePlacesAreSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "AGENTS.md")
	text := strings.Repeat("be kind\n", 200_000)
	long := time.Unix(1_000_000_000, 0)
	write(t, file, text)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	store := trust.Open(t.TempDir())
	watch := places.New(store, slog.New(slog.DiscardHandler)).StartAt(dir, guard.Places{})
	later(t)
	write(t, file, strings.Replace(text, "kind", "evil", 1))
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	if got := watch.Finish(guard.Places{}, nil, false).Text(); !strings.Contains(got, "AGENTS.md") || !store.Waits(file, trust.Of(nil).Digest) {
		t.Errorf("got %q", got)
	}
}

// later returns when the clock of the file system has moved on.
func later(t *testing.T) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	changed := func(path string) time.Time {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	for begin := time.Now(); ; {
		write(t, probe, "x")
		if changed(probe).After(begin) && time.Since(begin) > 20*time.Millisecond {
			return
		}
	}
}

// TestChangesWithinOneTickAreSeen: two contents of one size can have the same time.
func TestChangesWithinOneTickAreSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "AGENTS.md")
	write(t, file, "000")
	p := places.New(trust.Open(t.TempDir()), slog.New(slog.DiscardHandler))
	for i := range 100 {
		watch := p.StartAt(dir, guard.Places{})
		write(t, file, fmt.Sprintf("%03d", i+1))
		if watch.Finish(guard.Places{}, nil, false).Text() == "" {
			t.Fatalf("change %d is not seen", i)
		}
	}
}

// TestWritesThroughMappingsAreSeen: on a tmpfs they do not change the time of the file, elsewhere a process that is alive
// may keep a mapping, whose first write alone changes it.
func TestWritesThroughMappingsAreSeen(t *testing.T) {
	t.Parallel()
	for _, alive := range []bool{false, true} {
		t.Run(fmt.Sprintf("alive=%t", alive), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if !alive {
				dir = memory(t)
			}
			file := filepath.Join(dir, "AGENTS.md")
			write(t, file, "000")
			p := places.New(trust.Open(t.TempDir()), slog.New(slog.DiscardHandler))
			p.SetSettled()
			later(t)
			if alive {
				first := p.StartAt(dir, guard.Places{})
				defer func() {
					if text := first.Finish(guard.Places{}, nil, false).Text(); !strings.Contains(text, "AGENTS.md") {
						t.Errorf("got %q", text)
					}
				}()
				later(t)
			}
			bytes := mapped(t, file)
			for _, text := range []byte("123") {
				watch := p.StartAt(dir, guard.Places{})
				bytes[0] = text
				if watch.Finish(guard.Places{}, nil, false).Text() == "" {
					t.Errorf("the change to %q is not seen", text)
				}
				later(t)
			}
		})
	}
}

// mapped returns a file that is mapped for writing until the end of the test.
func mapped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	bytes, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(bytes) })
	return bytes
}

// memory returns a folder on a tmpfs.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "places")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || int64(fs.Type) != unix.TMPFS_MAGIC { //nolint:unconvert // 32 bits on some systems
		t.Fatalf("/dev/shm is no tmpfs: %v", err)
	}
	return dir
}
