package sim

import (
	"bytes"
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// value is a stored value with its revision.
type value struct {
	data     []byte
	revision uint64
}

// UnfencedValues returns log with values that replace those that are stored, whatever their
// revision. Tests use it to show that they detect such a fault.
func UnfencedValues(log runlog.Log) runlog.Log {
	h, ok := log.(*handle)
	if !ok {
		panic("sim: UnfencedValues takes the log of a process, before it is decorated")
	}
	return &handle{p: h.p, fence: h.fence, overwrites: h.overwrites, unfenced: true}
}

// Value reads the value of a key.
func (h *handle) Value(ctx context.Context, name runlog.ValueKey) (data []byte, revision uint64, err error) {
	if !name.Valid() {
		return nil, 0, fmt.Errorf("invalid key %q", name)
	}
	o := &op{key: key{kind: onValue, run: name.Namespace, text: name.String()}}
	o.do = func(fate) error {
		if v, ok := h.p.world.store.values[name]; ok {
			data, revision = append([]byte{}, v.data...), v.revision
		}
		return nil
	}
	return data, revision, h.p.interact(ctx, o)
}

// PutValue replaces the value of a key.
func (h *handle) PutValue(ctx context.Context, name runlog.ValueKey, data []byte, revision uint64) (stored uint64, err error) {
	switch {
	case !name.Valid():
		return 0, fmt.Errorf("invalid key %q", name)
	case len(data) > runlog.MaxRecord:
		return 0, fmt.Errorf("value of %d bytes: %w", len(data), runlog.ErrTooLarge)
	}
	data = bytes.Clone(data)
	s := h.p.world.store
	o := &op{key: key{kind: onPutValue, run: name.Namespace, a: revision, text: name.String()}, write: true}
	o.do = func(fate) error {
		have := s.values[name]
		if have.revision != revision && !h.unfenced {
			return fmt.Errorf("revision %d: %w", have.revision, runlog.ErrFenced)
		}
		stored = have.revision + 1
		s.values[name] = value{data, stored}
		return nil
	}
	err = h.p.interact(ctx, o)
	return stored, err
}
