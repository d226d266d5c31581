package memory

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Append stores rec behind the record that it names as its predecessor. Readers
// are given a copy that was encoded and decoded, so rec stays the caller's.
func (l *Log) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	name := runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()}
	if err := runlog.Appendable(name, rec); err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	data, err := runlog.Encode(rec)
	if err != nil {
		return 0, err
	}
	m := &message{
		kind:     runlog.KindJournal,
		entry:    runlog.Entry{Run: name, Header: runlog.HeaderOf(rec)},
		instance: rec.GetWriter().GetInstance(),
		nonce:    rec.GetWriter().GetNonce(),
	}
	if step := rec.GetStep(); step != nil {
		m.kind, m.to = runlog.KindStep, step.GetTo()
	}
	prev := rec.GetPrevSequence()
	m.entry.Record, m.entry.Err = runlog.Decode(data, m.entry.Header)
	var sequence uint64
	err = l.until(ctx, "append to "+name.String(), func() (done bool, err error) {
		r := l.runs[name]
		if r.newest() == prev {
			sequence = l.store(m)
			return true, nil
		}
		sequence, done, err = r.settle(m, prev)
		return done, err
	})
	if err != nil {
		return 0, err
	}
	return sequence, nil
}

// newest is the sequence of the run's newest record, 0 when there is none.
func (r *run) newest() uint64 {
	if r == nil || len(r.records) == 0 {
		return 0
	}
	return r.records[len(r.records)-1].entry.Sequence
}

// settle says what became of a record that cannot be stored behind prev: stored
// before, as sequence, or ErrFenced. It is not decided as long as the log has not
// come to prev. Of a version that was erased nobody knows any more whose it was;
// behind its fence nothing can be stored, and that is what the caller has to know.
func (r *run) settle(m *message, prev uint64) (sequence uint64, decided bool, err error) {
	if r.newest() == 0 || r.newest() < prev {
		return 0, false, nil
	}
	version := m.entry.Header.Version
	for i := len(r.records) - 1; i >= 0 && r.records[i].entry.Header.Version >= version; i-- {
		at := r.records[i]
		if at.entry.Header.Version == version && at.nonce == m.nonce && at.instance == m.instance {
			return at.entry.Sequence, true, nil
		}
	}
	return 0, true, fmt.Errorf("version %d of %s: %w", version, m.entry.Run, runlog.ErrFenced)
}

// AppendInbox stores an input behind the newest one.
func (l *Log) AppendInbox(ctx context.Context, name runlog.Run, item *harnessv1.InboxItem, after uint64) (sequence uint64, existed bool, err error) {
	if !name.Valid() {
		return 0, false, fmt.Errorf("input: run %q has an invalid name", name)
	}
	item = proto.CloneOf(item)
	if err := l.enter(ctx, "input to "+name.String()); err != nil {
		return 0, false, err
	}
	defer l.mu.Unlock()
	r := l.runs[name]
	for i := len(r.items()) - 1; i >= 0; i-- {
		at := r.inbox[i]
		if at.entry.Sequence <= after {
			break
		}
		if at.id == item.GetId() {
			return at.entry.Sequence, true, nil
		}
	}
	item.PrevSequence, item.Sequence = r.lastInbox(), 0
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(item)
	if err != nil {
		return 0, false, fmt.Errorf("encode input: %w", err)
	}
	if len(data) > runlog.MaxRecord {
		return 0, false, fmt.Errorf("input of %d bytes, the limit is %d: %w", len(data), runlog.MaxRecord, runlog.ErrTooLarge)
	}
	return l.store(&message{
		kind:  runlog.KindInbox,
		entry: runlog.Entry{Run: name},
		id:    item.GetId(),
		item:  data,
	}), false, nil
}

func (r *run) items() []*message {
	if r == nil {
		return nil
	}
	return r.inbox
}

// lastInbox is the sequence of the run's newest inbox item, 0 when there is none.
func (r *run) lastInbox() uint64 {
	items := r.items()
	if len(items) == 0 {
		return 0
	}
	return items[len(items)-1].entry.Sequence
}
