package places_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// BenchmarkCallThatChangesNothing: what a call costs in a workspace of 50,000 files in 5,000 folders with 60
// guarded places, apart from the command: with the comparison of what git runs, and with both. Its short form
// has a tenth of them.
func BenchmarkCallThatChangesNothing(b *testing.B) {
	dir, host := b.TempDir(), b.TempDir()
	folders := 5_000
	if testing.Short() {
		folders = 500
	}
	for folder := range folders {
		at := filepath.Join(dir, fmt.Sprintf("d%d/e%d", folder/100, folder))
		if err := os.MkdirAll(at, 0o755); err != nil {
			b.Fatal(err)
		}
		for file := range 10 {
			name := fmt.Sprintf("f%d.go", file)
			if file == 0 && folder%100 == 0 {
				name = "AGENTS.md"
			}
			if err := os.WriteFile(filepath.Join(at, name), []byte("text\n"), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	log := slog.New(slog.DiscardHandler)
	g := guard.New(guard.Config{Dir: host, Logger: log})
	p := places.New(trust.Open(host), log)
	for _, both := range []bool{false, true} {
		b.Run(fmt.Sprintf("places=%t", both), func(b *testing.B) {
			for b.Loop() {
				watch, err := g.Start(dir, guard.Reach{Everywhere: true})
				if err != nil {
					b.Fatal(err)
				}
				var changes *places.Watch
				if both {
					changes = p.Start(watch, "run")
				}
				_ = watch.End()
				_ = changes.End(watch, false, nil)
			}
		})
	}
}
