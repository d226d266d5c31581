package sim

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// store contains the stored messages: one sequence of records, inbox items and jobs of
// all runs. Only the scheduler uses it.
type store struct {
	all  []*message // the message with sequence n at n-1
	runs map[runlog.Run]*Log
	// order contains the runs in the order of their start.
	order []*Log
	// values are what outlives runs.
	values map[runlog.ValueKey]value
}

// message is a stored message.
type message struct {
	sequence uint64
	log      *Log
	// entry is the record, encoded its bytes. For an inbox item or a job, entry has only
	// run and sequence.
	entry   runlog.Entry
	encoded []byte
	item    *harnessv1.InboxItem
	job     *harnessv1.Job
	gone    bool
}

func (m *message) record() *harnessv1.Record { return m.entry.Record }

// Log contains everything that is stored of one run.
type Log struct {
	Run runlog.Run
	// records and items are in order, without erased ones.
	records, items []*message
	blobs          map[string][]byte
	jobs           map[string]*message  // by key
	keyed          map[string]keyedBlob // by key
	first          map[string]keyedBlob // that were stored first under their keys
	state          logState
	lives          int // erased runs of the name
}

// Records returns the records of the run, oldest first. They are shared and must not be
// changed.
func (l *Log) Records() []runlog.Entry {
	entries := make([]runlog.Entry, len(l.records))
	for i, m := range l.records {
		entries[i] = m.entry
	}
	return entries
}

// Newest returns the newest record; the zero Entry if there is none.
func (l *Log) Newest() runlog.Entry {
	if len(l.records) == 0 {
		return runlog.Entry{Run: l.Run}
	}
	return l.records[len(l.records)-1].entry
}

func newStore() *store {
	return &store{runs: map[runlog.Run]*Log{}, values: map[runlog.ValueKey]value{}}
}

func (s *store) of(run runlog.Run) *Log {
	l := s.runs[run]
	if l == nil {
		l = &Log{Run: run, blobs: map[string][]byte{}, jobs: map[string]*message{}, keyed: map[string]keyedBlob{}, first: map[string]keyedBlob{}}
		s.runs[run] = l
		s.order = append(s.order, l)
	}
	return l
}

// append stores a record, in its stored form, after the newest one and returns its
// message.
func (s *store) append(rec *harnessv1.Record, encoded []byte) (*message, error) {
	header := runlog.HeaderOf(rec)
	decoded, err := runlog.Decode(encoded, header)
	if err != nil {
		return nil, err
	}
	l := s.of(runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()})
	m := &message{sequence: uint64(len(s.all)) + 1, log: l, encoded: encoded}
	m.entry = runlog.Entry{Run: l.Run, Sequence: m.sequence, Header: header, Record: decoded}
	s.all = append(s.all, m)
	l.records = append(l.records, m)
	return m, nil
}

// fenced returns nil if a record may be stored now. settled is its sequence if it is
// already stored.
func (s *store) fenced(rec *harnessv1.Record) (settled uint64, err error) {
	newest := uint64(0)
	l := s.runs[runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()}]
	if l != nil {
		newest = l.Newest().Sequence
	}
	if newest == rec.GetPrevSequence() {
		return 0, nil
	}
	if l != nil {
		for _, m := range l.records {
			w := m.record().GetWriter()
			if m.entry.Header.Version == rec.GetVersion() && w.GetNonce() == rec.GetWriter().GetNonce() && w.GetInstance() == rec.GetWriter().GetInstance() {
				return m.sequence, nil
			}
		}
	}
	return 0, fmt.Errorf("version %d of %s/%s: %w", rec.GetVersion(), rec.GetNamespace(), rec.GetRunId(), runlog.ErrFenced)
}

// give stores an inbox item, unless one with its id is after the cursor.
func (s *store) give(run runlog.Run, item *harnessv1.InboxItem, after uint64) (m *message, existed bool) {
	l := s.of(run)
	for i := len(l.items) - 1; i >= 0 && l.items[i].sequence > after; i-- {
		if l.items[i].item.GetId() == item.GetId() {
			return l.items[i], true
		}
	}
	item = proto.CloneOf(item)
	item.PrevSequence = 0
	if n := len(l.items); n > 0 {
		item.PrevSequence = l.items[n-1].sequence
	}
	m = &message{sequence: uint64(len(s.all)) + 1, log: l, item: item}
	item.Sequence = m.sequence
	m.entry = runlog.Entry{Run: run, Sequence: m.sequence}
	s.all = append(s.all, m)
	l.items = append(l.items, m)
	return m, false
}

// view returns the view of a run from a replica whose last sequence is upTo.
func (s *store) view(run runlog.Run, upTo uint64) (v runlog.View, err error) {
	l := s.runs[run]
	if l == nil {
		return v, fmt.Errorf("run %s: %w", run, runlog.ErrNotFound)
	}
	for i := len(l.items) - 1; i >= 0 && v.InboxSequence == 0; i-- {
		if l.items[i].sequence <= upTo {
			v.InboxSequence = l.items[i].sequence
		}
	}
	for i := len(l.records) - 1; i >= 0 && v.Step.Sequence == 0; i-- {
		m := l.records[i]
		if m.sequence > upTo {
			continue
		}
		if v.Newest.Sequence == 0 {
			v.Newest = m.entry
		}
		if m.record().GetStep() != nil {
			v.Step = m.entry
		}
	}
	if v.Newest.Sequence == 0 {
		return v, fmt.Errorf("run %s: %w", run, runlog.ErrNotFound)
	}
	return v, nil
}

// places returns the sequences at which the view of a run changes, starting with from.
func (s *store) places(run runlog.Run, from uint64) []uint64 {
	l := s.runs[run]
	if l == nil {
		return nil
	}
	var at []uint64
	for _, messages := range [][]*message{l.records, l.items} {
		for i := len(messages) - 1; i >= 0 && messages[i].sequence >= from; i-- {
			at = append(at, messages[i].sequence)
		}
	}
	return at
}

// inbox returns the items in (after, upTo], within the bounds of one read.
func (s *store) inbox(run runlog.Run, after, upTo uint64) ([]*harnessv1.InboxItem, error) {
	if upTo <= after {
		return nil, nil
	}
	if upTo > uint64(len(s.all)) || s.all[upTo-1].item == nil || s.all[upTo-1].log.Run != run || s.all[upTo-1].gone {
		return nil, fmt.Errorf("sequence %d is no input to %s: %w", upTo, run, runlog.ErrNotFound)
	}
	var items []*harnessv1.InboxItem
	size := 0
	for _, m := range s.runs[run].items {
		if m.sequence <= after || m.sequence > upTo {
			continue
		}
		size += proto.Size(m.item)
		if len(items) == runlog.MaxDrainItems || len(items) > 0 && size > runlog.MaxDrainBytes {
			break
		}
		items = append(items, proto.CloneOf(m.item))
	}
	return items, nil
}

// erase deletes up to n messages of a run, all for n < 0, except the record keep.
func (s *store) erase(run runlog.Run, keep, through uint64, n int) {
	l := s.runs[run]
	if l == nil {
		return
	}
	drop := func(messages []*message) []*message {
		var left []*message
		for _, m := range messages {
			if m.sequence == keep || m.sequence > through || n == 0 {
				left = append(left, m)
				continue
			}
			n--
			m.gone = true
		}
		return left
	}
	l.items = drop(l.items)
	l.records = drop(l.records)
	if len(l.records) == 0 && len(l.items) == 0 {
		l.lives++
		l.state = logState{}
	}
}

// newest returns the sequence of the newest message of a run; 0 if there is none.
func (s *store) newest(run runlog.Run) uint64 {
	l := s.runs[run]
	if l == nil {
		return 0
	}
	newest := l.Newest().Sequence
	if n := len(l.items); n > 0 {
		newest = max(newest, l.items[n-1].sequence)
	}
	return newest
}

// left returns how many messages of a run an erasure still has to delete.
func (s *store) left(run runlog.Run, keep, through uint64) int {
	n := 0
	if l := s.runs[run]; l != nil {
		for _, messages := range [][]*message{l.items, l.records} {
			for _, m := range messages {
				if m.sequence != keep && m.sequence <= through {
					n++
				}
			}
		}
	}
	return n
}

// deleted reports whether the run is deleted, or another one of its name was.
func (l *Log) deleted() bool { return l.state.expired || l.lives > 0 }

// changed returns a stored record that was modified in memory: records are shared and
// must not be changed.
func (s *store) changed() *message {
	for _, m := range s.all {
		if m.record() == nil || m.gone {
			continue
		}
		if now, err := runlog.Encode(m.record()); err != nil || !bytes.Equal(now, m.encoded) {
			return m
		}
	}
	return nil
}

// Blob returns a blob of the run. It must not be changed.
func (l *Log) Blob(digest string) ([]byte, error) {
	data, ok := l.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", digest, runlog.ErrNotFound)
	}
	return data, nil
}
