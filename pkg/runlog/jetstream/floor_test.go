package jetstream

import (
	"context"
	"errors"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestAckFloorOutlivesItsConsumer checks that the floor does not decrease when a
// consumer has lost acknowledgements.
func TestAckFloorOutlivesItsConsumer(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	run := runlog.Run{Namespace: "default", ID: "r"}
	sequence, err := l.Append(t.Context(), first("r"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = l.Consume(ctx, "turn", 1, func(ctx context.Context, d runlog.Delivery) {
		if err := d.Ack(); err != nil {
			t.Error(err)
		}
		for floor := uint64(0); floor < sequence && ctx.Err() == nil; {
			if floor, err = l.AckFloor(ctx, run, "turn"); err != nil {
				t.Error(err)
			}
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), "RUNS_0", execConsumer("turn")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.AckFloor(t.Context(), run, "turn"); !errors.Is(err, runlog.ErrNotFound) {
		t.Errorf("without a consumer: %v", err)
	}
	if err := provision(t.Context(), js, Layout{}); err != nil {
		t.Fatal(err)
	}
	if floor, err := l.AckFloor(t.Context(), run, "turn"); err != nil || floor != sequence {
		t.Errorf("with another consumer the floor is %d (%v), it was %d", floor, err, sequence)
	}
}
