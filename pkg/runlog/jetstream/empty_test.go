package jetstream

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// TestEmptyBus checks that a process that is connected to a bus that came back empty reports
// that the bus is not provisioned, and works again after it is.
func TestEmptyBus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &lone{dir: filepath.Join(dir, "now"), saved: filepath.Join(dir, "then"), listen: "127.0.0.1:0"}
	s.start(t)
	t.Cleanup(func() { s.server.Stop() })
	if err := Provision(t.Context(), Config{InProcess: &s.network}, Layout{}); err != nil {
		t.Fatal(err)
	}
	l := s.open(t)
	kept(t, l, first("a"))
	s.server.Stop()
	if err := storetest.Replace(s.dir, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	await := func(what string, reached func(error) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !reached(l.Trouble()); {
			if time.Now().After(end) || !pause(t.Context(), lagPause) {
				t.Fatalf("%s: readiness reports %v", what, l.Trouble())
			}
		}
	}
	await("empty", func(err error) bool { return err != nil && strings.Contains(err.Error(), "not provisioned") })
	if err := Provision(t.Context(), Config{InProcess: &s.network}, Layout{}); err != nil {
		t.Fatal(err)
	}
	await("provisioned", func(err error) bool { return err == nil })
	kept(t, l, first("b"))
}
