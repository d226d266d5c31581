package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// handle is the run log of one process.
type handle struct {
	p *Process
	// fence is this process's spelling of the filter of its fences.
	fence string
	// overwrites makes a keyed blob replace the one that is stored.
	overwrites bool
	// unfenced makes a value replace the one that is stored, whatever its revision.
	unfenced bool
}

var _ runlog.Log = (*handle)(nil)

// SpellFence returns log with another spelling of the filter of its fences. On a
// replicated bus the server fences appends in flight only between equal spellings.
// Tests use it to show that the invariants detect such a fault.
func SpellFence(log runlog.Log, spelling string) runlog.Log {
	h, ok := log.(*handle)
	if !ok {
		panic("sim: SpellFence takes the log of a process, before it is decorated")
	}
	return &handle{p: h.p, fence: spelling}
}

// OverwriteBlobs returns log with keyed blobs that replace those that are stored. Tests use
// it to show that the invariants detect such a fault.
func OverwriteBlobs(log runlog.Log) runlog.Log {
	h, ok := log.(*handle)
	if !ok {
		panic("sim: OverwriteBlobs takes the log of a process, before it is decorated")
	}
	return &handle{p: h.p, fence: h.fence, overwrites: true}
}

// Append proposes a record.
func (h *handle) Append(ctx context.Context, rec *harnessv1.Record) (sequence uint64, err error) {
	w := h.p.world
	o := &op{
		key:   key{kind: onAppend, run: rec.GetRunId(), a: rec.GetVersion(), b: rec.GetPrevSequence(), text: rec.GetStep().GetTo()},
		write: true, fence: "log " + rec.GetNamespace() + "/" + rec.GetRunId() + h.fence, note: sketch(rec),
	}
	if err := runlog.Appendable(runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()}, rec); err != nil {
		return 0, err
	}
	encoded, err := runlog.Encode(rec)
	if err != nil {
		return 0, err
	}
	o.check = func() error {
		settled, err := w.store.fenced(rec)
		if settled != 0 {
			sequence = settled
			return errSettled
		}
		return err
	}
	o.do = func(fate fate) error {
		if fate != landed { // a proposal has been checked
			if err := o.check(); errors.Is(err, errSettled) {
				return nil
			} else if err != nil {
				return err
			}
		}
		m, err := w.store.append(rec, encoded)
		if err != nil {
			return err
		}
		sequence = m.sequence
		w.stored(m)
		return nil
	}
	err = h.p.interact(ctx, o)
	if err != nil {
		return 0, err
	}
	return sequence, nil
}

// AppendInbox stores an item.
func (h *handle) AppendInbox(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, after uint64) (sequence uint64, existed bool, err error) {
	if size := proto.Size(item); size > runlog.MaxRecord {
		return 0, false, fmt.Errorf("input of %d bytes, the limit is %d: %w", size, runlog.MaxRecord, runlog.ErrTooLarge)
	}
	w := h.p.world
	var was bool
	o := &op{
		key:   key{kind: onInbox, run: run.ID, a: after, text: item.GetId()},
		write: true, note: fmt.Sprintf("%s %T", item.GetId(), item.GetInput()),
	}
	newest := uint64(0)
	looked := false
	o.do = func(fate fate) error {
		if looked && fate == landed { // late: the item was sent after the newest one of that time
			if l := w.store.runs[run]; l != nil && len(l.items) > 0 && l.items[len(l.items)-1].sequence != newest {
				return runlog.ErrFenced
			}
		}
		m, existed := w.store.give(run, item, after)
		sequence, was = m.sequence, existed
		if !existed {
			w.stored(m)
		}
		return nil
	}
	o.sent = func() {
		looked = true
		if l := w.store.runs[run]; l != nil && len(l.items) > 0 {
			newest = l.items[len(l.items)-1].sequence
		}
	}
	if err := h.p.interact(ctx, o); err != nil {
		return 0, false, err
	}
	return sequence, was, nil
}

// View answers from a replica that has contains.
func (h *handle) View(ctx context.Context, run runlog.Run, contains uint64) (v runlog.View, err error) {
	w := h.p.world
	o := &op{key: key{kind: onView, run: run.ID, a: contains}, waitsFor: contains}
	o.do = func(fate fate) error {
		upTo := uint64(len(w.store.all))
		if fate == answeredStale {
			upTo = w.staleAt(run, contains)
		}
		v, err = w.store.view(run, upTo)
		o.note = fmt.Sprintf("newest %d, inbox %d", v.Newest.Sequence, v.InboxSequence)
		h.p.viewed(run, v.Newest, contains)
		return err
	}
	if err := h.p.interact(ctx, o); err != nil {
		return runlog.View{}, err
	}
	return v, nil
}

// Newer answers from a replica that has sequence.
func (h *handle) Newer(ctx context.Context, run runlog.Run, sequence uint64) (bool, error) {
	v, err := h.View(ctx, run, sequence)
	return max(v.Newest.Sequence, v.InboxSequence) > sequence, err
}

// staleAt draws the last sequence of a replica that answers a read of run.
func (w *World) staleAt(run runlog.Run, contains uint64) uint64 {
	places := w.store.places(run, max(contains, 1))
	slices.Sort(places)
	if contains > 0 {
		places = append([]uint64{contains}, places...)
	} else {
		places = append([]uint64{0}, places...)
	}
	if n := len(places); n > 6 && w.random.IntN(4) > 0 {
		places = places[n-6:] // mostly with a small lag
	}
	return places[w.random.IntN(len(places))]
}

// Read returns the record with a sequence.
func (h *handle) Read(ctx context.Context, run runlog.Run, sequence uint64) (e runlog.Entry, err error) {
	w := h.p.world
	o := &op{key: key{kind: onRead, run: run.ID, a: sequence}}
	o.do = func(fate) error {
		if sequence == 0 || sequence > uint64(len(w.store.all)) || w.store.all[sequence-1].gone ||
			w.store.all[sequence-1].log.Run != run || w.store.all[sequence-1].record() == nil {
			return fmt.Errorf("sequence %d of %s: %w", sequence, run, runlog.ErrNotFound)
		}
		e = w.store.all[sequence-1].entry
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return runlog.Entry{}, err
	}
	return e, nil
}

// LastInbox reads from any replica.
func (h *handle) LastInbox(ctx context.Context, run runlog.Run) (sequence uint64, err error) {
	w := h.p.world
	o := &op{key: key{kind: onLastInbox, run: run.ID}}
	o.do = func(fate fate) error {
		l := w.store.runs[run]
		if l == nil || len(l.items) == 0 {
			return nil
		}
		n := len(l.items)
		if fate == answeredStale {
			n = w.random.IntN(n + 1)
		}
		if n > 0 {
			sequence = l.items[n-1].sequence
		}
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return 0, err
	}
	return sequence, nil
}

// Inbox reads items by their sequences.
func (h *handle) Inbox(ctx context.Context, run runlog.Run, after, upTo uint64) (items []*harnessv1.InboxItem, err error) {
	w := h.p.world
	o := &op{key: key{kind: onItems, run: run.ID, a: after, b: upTo}}
	o.do = func(fate) error {
		items, err = w.store.inbox(run, after, upTo)
		return err
	}
	if err := h.p.interact(ctx, o); err != nil {
		return nil, err
	}
	return items, nil
}

// PutBlob stores bytes.
func (h *handle) PutBlob(ctx context.Context, run runlog.Run, data []byte) (*harnessv1.BlobRef, error) {
	w := h.p.world
	ref := content.Ref(data)
	o := &op{key: key{kind: onBlob, run: run.ID, text: ref.GetDigest()}, write: true}
	o.do = func(fate) error {
		w.store.of(run).blobs[ref.GetDigest()] = bytes.Clone(data)
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return nil, err
	}
	return ref, nil
}

// Blob returns the bytes with a digest.
func (h *handle) Blob(ctx context.Context, run runlog.Run, digest string) (data []byte, err error) {
	w := h.p.world
	o := &op{key: key{kind: onGetBlob, run: run.ID, text: digest}}
	o.do = func(fate) error {
		if l := w.store.runs[run]; l != nil {
			if have, ok := l.blobs[digest]; ok {
				data = bytes.Clone(have)
				return nil
			}
		}
		return fmt.Errorf("blob %s of %s: %w", digest, run, runlog.ErrNotFound)
	}
	if err := h.p.interact(ctx, o); err != nil {
		return nil, err
	}
	return data, nil
}

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
