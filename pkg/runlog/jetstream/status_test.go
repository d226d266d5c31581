package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func TestStatusCoversAllPartitions(t *testing.T) {
	t.Parallel()
	l := open(t, start(t, EmbeddedConfig{}), Config{}, Layout{Partitions: 2})
	const stored = 6
	for i := range stored {
		if _, err := l.Append(t.Context(), first(fmt.Sprintf("r%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	status := func() (waits, works uint64) {
		streams, consumers, err := l.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(streams) != 6 || streams[0].Name != "RUNS_0" || streams[0].Size == 0 || streams[0].Limit == 0 || streams[3].Size == 0 {
			t.Fatalf("streams: %+v", streams)
		}
		names := map[string]bool{}
		for _, c := range consumers {
			if names[c.Name] {
				t.Errorf("duplicate consumer %s", c.Name)
			}
			names[c.Name] = true
			if c.Name == "turn" {
				waits, works = c.Pending, c.AckPending
			}
		}
		for _, name := range append([]string{wakeConsumer, timerConsumer}, workflow.Default()...) {
			if !names[name] {
				t.Errorf("%s is missing", name)
			}
		}
		return waits, works
	}
	// The server counts a step for its consumer some time after it has confirmed it.
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	end := time.After(time.Minute)
	waits, works := status()
	for ; waits < stored; waits, works = status() {
		select {
		case <-again.C:
		case <-end:
			t.Fatalf("%d steps wait, want %d", waits, stored)
		}
	}
	if waits != stored || works != 0 {
		t.Errorf("%d wait and %d are in work, want %d and 0", waits, works, stored)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := l.Consume(ctx, "turn", 2, func(_ context.Context, d runlog.Delivery) {
		if _, works := status(); works == 0 {
			t.Error("a step that is in work is not shown")
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestRefusedWritesAreCounted(t *testing.T) {
	t.Parallel()
	l := open(t, start(t, EmbeddedConfig{}), Config{}, Layout{})
	if _, err := l.Append(t.Context(), first("r")); err != nil {
		t.Fatal(err)
	}
	other := first("r")
	other.Writer.Nonce++
	if _, err := l.Append(t.Context(), other); !errors.Is(err, runlog.ErrFenced) {
		t.Fatal(err)
	}
	if c := l.Counts(); c.Conflicts != 1 || c.Landed != 0 || c.Resent != 0 || c.Reconnects != 0 {
		t.Errorf("%+v", c)
	}
}
