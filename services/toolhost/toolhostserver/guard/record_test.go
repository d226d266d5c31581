package guard

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestRecordsOfCalls: a host that dies during a call leaves what the next one compares with, also
// if the call uses the record of an earlier call; after a call nothing is put back.
func TestRecordsOfCalls(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/config": "[user]\n"})
	config := filepath.Join(dir, ".git/config")
	const written = "[core]\n\tfsmonitor = evil\n"
	for _, sync := range []bool{false, true} {
		host := Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Sync: sync}
		g := New(host)
		next := func() { New(host).Recover() }

		first := start(t, g, dir)
		path := first.record.path
		first.End()
		again := start(t, g, dir)
		if again.record.path != path {
			t.Fatalf("the record is %s, want that of the call before, %s", again.record.path, path)
		}
		both := start(t, g, dir)
		if both.record.path == path {
			t.Fatal("two calls at the same time share a record")
		}
		both.End()
		write(t, dir, map[string]string{".git/config": written})
		next() // the host has died
		if got := read(t, config); got != "[user]\n" {
			t.Fatalf("the next host leaves %q", got)
		}
		again.End()

		// No call runs: what the user writes stays.
		last := start(t, g, dir)
		last.End()
		write(t, dir, map[string]string{".git/config": written})
		next()
		if got := read(t, config); got != written {
			t.Fatalf("the next host puts back what the user wrote: %q", got)
		}
		if left, _ := filepath.Glob(filepath.Join(g.calls, "*")); len(left) > 0 {
			t.Fatalf("the next host leaves %v", left)
		}
		write(t, dir, map[string]string{".git/config": "[user]\n"})

		// A record that was deleted meanwhile is not used again.
		deleted := start(t, g, dir)
		if _, err := os.Stat(deleted.record.path); err != nil {
			t.Fatal(err)
		}
		write(t, dir, map[string]string{".git/config": written})
		next()
		if got := read(t, config); got != "[user]\n" {
			t.Fatalf("the next host leaves %q", got)
		}
		deleted.End()
	}
}
