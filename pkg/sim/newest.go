package sim

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Newest reads from the leader, which does not lag.
func (h *handle) Newest(ctx context.Context, run runlog.Run) (sequence uint64, err error) {
	w := h.p.world
	o := &op{key: key{kind: onRead, run: run.ID, text: "newest"}}
	o.do = func(fate) error {
		l := w.store.runs[run]
		if l == nil {
			return nil
		}
		sequence = l.Newest().Sequence
		if n := len(l.items); n > 0 {
			sequence = max(sequence, l.items[n-1].sequence)
		}
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return 0, err
	}
	return sequence, nil
}
