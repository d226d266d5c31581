package places_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	watch := p.StartAt(dir, nil)
	later(t)
	write(t, file, "two")
	write(t, target, "two or more")
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	if text := watch.Finish(nil, nil, false).Text(); !strings.Contains(text, "AGENTS.md, CLAUDE.md") {
		t.Errorf("got %q", text)
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
		watch := p.StartAt(dir, nil)
		write(t, file, fmt.Sprintf("%03d", i+1))
		if watch.Finish(nil, nil, false).Text() == "" {
			t.Fatalf("change %d is not seen", i)
		}
	}
}
