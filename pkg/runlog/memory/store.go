package memory

import "github.com/harnessmesh/harnessmesh/pkg/runlog"

// message is what the log holds at a sequence, or a timer that fired. It does not
// change once it is stored.
type message struct {
	kind  runlog.Kind
	to    string // of a step
	entry runlog.Entry
	// writer of a record.
	instance string
	nonce    uint64
	// id and encoded form of an inbox item.
	id   string
	item []byte
}

// run is what the log holds of a run, oldest first.
type run struct {
	records []*message
	inbox   []*message
	blobs   map[string]*blob  // by digest
	timers  map[uint64]*timer // by park version, until they were handled
}

type blob struct{ data []byte }

// drop forgets a run of which nothing is left.
func (l *Log) drop(name runlog.Run) {
	r := l.runs[name]
	if len(r.records) == 0 && len(r.inbox) == 0 && len(r.blobs) == 0 && len(r.timers) == 0 {
		delete(l.runs, name)
	}
}

// last is the sequence of the newest message.
func (l *Log) last() uint64 { return uint64(len(l.messages)) }

// of is what the log holds of a run, made when it is not there.
func (l *Log) of(name runlog.Run) *run {
	r := l.runs[name]
	if r == nil {
		r = &run{blobs: map[string]*blob{}, timers: map[uint64]*timer{}}
		l.runs[name] = r
	}
	return r
}

// store puts a message behind all others and passes it on.
func (l *Log) store(m *message) uint64 {
	l.messages = append(l.messages, m)
	m.entry.Sequence = l.last()
	r := l.of(m.entry.Run)
	if m.kind == runlog.KindInbox {
		r.inbox = append(r.inbox, m)
	} else {
		r.records = append(r.records, m)
		l.feed(m.entry)
	}
	if m.standing() {
		l.follow(m.entry)
	}
	l.announceGrowth()
	if c := l.consumerOf(m); c != nil {
		c.add(&job{message: m})
	}
	return m.entry.Sequence
}

// consumerOf is the consumer to which a message is delivered; nil for none.
func (l *Log) consumerOf(m *message) *consumer {
	switch {
	case m.kind == runlog.KindInbox, m.kind == runlog.KindStep && runlog.IsRest(m.to):
		return l.wakes
	case m.kind == runlog.KindStep:
		return l.executors[m.to]
	}
	return nil
}
