package memory

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Read returns the record with the given sequence.
func (l *Log) Read(ctx context.Context, name runlog.Run, sequence uint64) (runlog.Entry, error) {
	if err := l.enter(ctx, "read "+name.String()); err != nil {
		return runlog.Entry{}, err
	}
	defer l.mu.Unlock()
	m := l.at(sequence)
	if m == nil || m.entry.Run != name || m.kind == runlog.KindInbox {
		return runlog.Entry{}, fmt.Errorf("sequence %d holds no record of %s: %w", sequence, name, runlog.ErrNotFound)
	}
	return m.entry, nil
}

// at is the message with a sequence; nil when there is none.
func (l *Log) at(sequence uint64) *message {
	if sequence == 0 || sequence > l.last() {
		return nil
	}
	return l.messages[sequence-1]
}

// View returns the newest records of a run. A log that is not as far as contains
// is waited for, and so is a run of which contains is known and nothing is there.
func (l *Log) View(ctx context.Context, name runlog.Run, contains uint64) (runlog.View, error) {
	var view runlog.View
	err := l.until(ctx, "view "+name.String(), func() (done bool, err error) {
		r := l.runs[name]
		switch {
		case l.last() < contains, contains > 0 && r.newest() == 0 && r.lastInbox() == 0:
			return false, nil
		case r.newest() == 0:
			return true, fmt.Errorf("run %s: %w", name, runlog.ErrNotFound)
		}
		view = r.view()
		return true, nil
	})
	return view, err
}

func (r *run) view() runlog.View {
	v := runlog.View{Newest: r.records[len(r.records)-1].entry, InboxSequence: r.lastInbox()}
	for i := len(r.records) - 1; i >= 0; i-- {
		if r.records[i].kind == runlog.KindStep {
			v.Step = r.records[i].entry
			break
		}
	}
	return v
}

// LastInbox returns the sequence of the newest inbox item.
func (l *Log) LastInbox(ctx context.Context, name runlog.Run) (uint64, error) {
	if err := l.enter(ctx, "inbox of "+name.String()); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	return l.runs[name].lastInbox(), nil
}

// Inbox returns what repair may take out of an inbox at once.
func (l *Log) Inbox(ctx context.Context, name runlog.Run, after, upTo uint64) ([]*harnessv1.InboxItem, error) {
	stored, err := l.inbox(ctx, name, after, upTo)
	if err != nil {
		return nil, err
	}
	items := make([]*harnessv1.InboxItem, 0, len(stored))
	size := 0
	for _, m := range stored {
		item := &harnessv1.InboxItem{} // the caller's own
		if err := proto.Unmarshal(m.item, item); err != nil {
			return nil, fmt.Errorf("input at sequence %d of %s: %w", m.entry.Sequence, name, err)
		}
		item.Sequence = m.entry.Sequence
		size += proto.Size(item)
		if len(items) > 0 && size > runlog.MaxDrainBytes {
			break
		}
		items = append(items, item)
	}
	return items, nil
}

// inbox returns the oldest items in (after, upTo].
func (l *Log) inbox(ctx context.Context, name runlog.Run, after, upTo uint64) ([]*message, error) {
	if err := l.enter(ctx, "inbox of "+name.String()); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if upTo <= after {
		return nil, nil
	}
	if m := l.at(upTo); m == nil || m.kind != runlog.KindInbox || m.entry.Run != name {
		return nil, fmt.Errorf("inbox: sequence %d is no input to %s: %w", upTo, name, runlog.ErrNotFound)
	}
	var items []*message
	for _, m := range l.runs[name].items() {
		if m.entry.Sequence > after && m.entry.Sequence <= upTo && len(items) < runlog.MaxDrainItems {
			items = append(items, m)
		}
	}
	return items, nil
}

// PutBlob stores data under its digest.
func (l *Log) PutBlob(ctx context.Context, name runlog.Run, data []byte) (*harnessv1.BlobRef, error) {
	if !name.Valid() {
		return nil, fmt.Errorf("store blob: run %q has an invalid name", name)
	}
	ref := content.Ref(data)
	if err := l.enter(ctx, "store blob"); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if r := l.of(name); r.blobs[ref.GetDigest()] == nil {
		r.blobs[ref.GetDigest()] = &blob{bytes.Clone(data)}
	}
	return ref, nil
}

// Blob returns a copy of the bytes behind a digest.
func (l *Log) Blob(ctx context.Context, name runlog.Run, digest string) ([]byte, error) {
	if err := l.enter(ctx, "blob of "+name.String()); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if r := l.runs[name]; r != nil && r.blobs[digest] != nil {
		return bytes.Clone(r.blobs[digest].data), nil
	}
	return nil, fmt.Errorf("blob %.12s of %s: %w", digest, name, runlog.ErrNotFound)
}
