package mesh

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestSystemFullStream checks that a full stream stops the mesh with a message, and that runs
// continue once it is larger.
func TestSystemFullStream(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, work)
	m := meshtest.Start(t, bin, meshtest.Config{})
	done := make(chan struct{})
	var d *driver
	var entries []runlog.Entry
	started := make(chan struct{}, 1000)
	s := work
	s.drive = func(*driver, *harnessv1.Event) { started <- struct{}{} }
	go func() {
		defer close(done)
		d, entries = s.through(context.WithoutCancel(t.Context()), t, m, "full")
	}()
	<-started
	if err := m.Bus.UpdateStream("RUNS_0", func(c *jetstream.StreamConfig) { c.MaxBytes = 1 }); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, "a role reports the full stream", func() bool {
		for _, role := range []string{"repair", "compaction", "turn", "stopdecision"} {
			if strings.Contains(m.Process(role).Stderr(), "the stream is full: raise its limit with `harness provision --max-bytes`") {
				return true
			}
		}
		return false
	})
	m.Harness("provision", "--nats", m.Bus.URL(), "--max-bytes", "1000000000")
	<-done
	sound(t, d, entries)
	same(t, want[work.name], d.canonical(entries))
}
