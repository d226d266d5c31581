package jetstream

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// TestDamagedBlock damages the newest record of a run in its block. The run is reported as
// damaged, by name, and never as one that does not exist. Other runs continue.
func TestDamagedBlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &lone{dir: filepath.Join(dir, "now"), saved: filepath.Join(dir, "then"), listen: "127.0.0.1:0"}
	s.start(t)
	t.Cleanup(func() { s.server.Stop() })
	if err := Provision(t.Context(), Config{InProcess: &s.network}, Layout{}); err != nil {
		t.Fatal(err)
	}
	l := s.open(t)
	a, b := kept(t, l, first("a")), kept(t, l, first("b"))
	b, a = kept(t, l, linked(b, 2)), kept(t, l, linked(a, 2))
	s.server.Stop()
	damage(t, s.dir, b.Sequence)
	s.start(t)
	for name, log := range map[string]*Log{"a log from before": l, "a new log": s.open(t)} {
		view, err := log.View(t.Context(), b.Run, 0)
		for errors.Is(err, runlog.ErrUnavailable) { // the bus starts
			view, err = log.View(t.Context(), b.Run, 0)
		}
		if !errors.Is(err, runlog.ErrLost) || !strings.Contains(err.Error(), b.Run.String()) {
			t.Errorf("%s: the damaged run is at version %d, %v", name, view.Newest.Header.Version, err)
		}
		if view, err := log.View(t.Context(), a.Run, 0); err != nil || view.Newest.Sequence != a.Sequence {
			t.Errorf("%s: another run is at %d, %v", name, view.Newest.Sequence, err)
		}
		if _, err := log.View(t.Context(), runlog.Run{Namespace: a.Run.Namespace, ID: "none"}, 0); !errors.Is(err, runlog.ErrNotFound) {
			t.Errorf("%s: a run that does not exist: %v", name, err)
		}
	}
	kept(t, l, linked(a, 3))
}

// damage changes a byte of a stored message.
func damage(t *testing.T, dir string, sequence uint64) {
	t.Helper()
	blocks, err := storetest.Blocks(dir, runsStream(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		for _, r := range block.Records {
			if r.Sequence != sequence {
				continue
			}
			data, err := os.ReadFile(block.Path)
			if err != nil {
				t.Fatal(err)
			}
			data[r.Offset+r.Size-20] ^= 0xff
			if err := os.WriteFile(block.Path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no block has sequence %d", sequence)
}
