package jetstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// history is what this process knows of the messages of one RUNS stream, to find out
// whether the stream has lost the newest of them.
//
// JetStream acknowledges messages before they are on a disk, and a bus can be restored
// from an older backup. It then uses the sequences of the lost messages again. Everything
// that this process knows of them must go: cached records, ack floors, and leases.
//
// A stream that a server has restarted is seen through another connection. So a write is
// sent only after the marks have been verified for the present connection (gate). Other
// losses are found by answers that end before what this process has seen (suspect).
type history struct {
	partition int
	// verifying contains a token while the marks are being verified.
	verifying chan struct{}
	// connection is the number of reconnects of the connection for which the marks were
	// verified.
	connection atomic.Uint64
	// following is true while a goroutine verifies the marks.
	following atomic.Bool
	// epoch counts the losses.
	epoch atomic.Uint64
	// rewound is the epoch for which Rewind has reset the consumers.
	rewound atomic.Uint64
	// newest is the sequence of the newest mark.
	newest atomic.Uint64
	// unsettled is the time, in nanoseconds since 1970, until which messages that were
	// delivered before the newest reconnect or loss may be queued in this process; 0 for
	// neither. Messages up to settled are not in doubt.
	unsettled atomic.Int64
	settled   atomic.Uint64
	// kept is the sequence up to which the newest loss has certainly left everything.
	kept atomic.Uint64

	mu sync.Mutex
	marks
	suspected time.Time     // when answers were last suspect
	missing   error         // why the stream cannot be used: it is gone
	lost      chan struct{} // closed with the next loss
}

func newHistory(partition int, connection uint64) *history {
	h := &history{partition: partition, verifying: make(chan struct{}, 1), lost: make(chan struct{})}
	h.connection.Store(connection)
	return h
}

// settleTime is how long a message may be queued in this process.
const settleTime = 10 * time.Second

// doubtful reports whether a message that was queued in this process may have been delivered
// before the newest reconnect or loss, and may not be stored any more. A process that has
// queued a lost message and no mark of it sees no loss.
func (h *history) doubtful(sequence uint64) bool {
	until := h.unsettled.Load()
	return until != 0 && sequence > h.settled.Load() && time.Now().UnixNano() < until
}

// doubt makes the queued messages above settled doubtful.
func (h *history) doubt(settled uint64) {
	h.settled.Store(settled)
	h.unsettled.Store(time.Now().Add(settleTime).UnixNano())
}

// certain reports whether a message that was queued in this process is still stored.
func (l *Log) certain(p int, sequence uint64) bool {
	h := l.histories[p]
	return l.verified(h) && !h.doubtful(sequence)
}

// verified reports whether the marks of a partition are verified for the present connection.
func (l *Log) verified(h *history) bool { return h.connection.Load() == l.reconnects() }

// loss returns a channel that is closed with the next loss.
func (h *history) loss() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// gone returns why the stream cannot be used, nil if it can.
func (h *history) gone() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missing
}

// reconnects returns how often the connection was re-established. Messages of a new
// connection are received after the number has changed, and nothing is sent between.
func (l *Log) reconnects() uint64 { return l.nc.Stats().Reconnects }

// saw remembers a stored message of a partition. It must have been sent by the server
// through the present connection; see doubtful.
func (l *Log) saw(p int, sequence uint64, subject string, data []byte) {
	h := l.histories[p]
	// Until the marks are verified, messages of another history may be among those that
	// arrive.
	if sequence <= h.newest.Load() || !l.verified(h) {
		return
	}
	k := markOf(sequence, subject, data)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(k)
	h.newest.Store(h.marks.newest.sequence)
}

// gate returns when the marks of a partition are verified for the present connection,
// which is the number that it returns. Without a reconnect this is one comparison.
func (l *Log) gate(ctx context.Context, p int) (connection uint64, err error) {
	h := l.histories[p]
	for {
		connection = l.reconnects()
		if h.connection.Load() == connection {
			return connection, nil
		}
		if err := l.verify(ctx, h, connection, false); err != nil {
			return 0, err
		}
	}
}

// suspectEvery is the interval at which suspect answers make a process verify its marks.
const suspectEvery = time.Second

// suspect verifies the marks of a partition because an answer ended at last, before what
// this process has seen: a replica that lags has given it, or the stream has lost
// messages.
func (l *Log) suspect(ctx context.Context, p int, last uint64) error {
	h := l.histories[p]
	if last >= h.newest.Load() {
		return nil
	}
	h.mu.Lock()
	early := time.Since(h.suspected) < suspectEvery
	if !early {
		h.suspected = time.Now()
	}
	h.mu.Unlock()
	if early {
		return nil
	}
	return l.verify(ctx, h, l.reconnects(), true)
}

// verify compares the marks with the stream, as its leader has it. If the stream has lost
// messages, it drops what this process knows of them. An error means that the leader
// does not answer.
func (l *Log) verify(ctx context.Context, h *history, connection uint64, again bool) error {
	select {
	case h.verifying <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.verifying }()
	if !again && h.connection.Load() == connection {
		return nil
	}
	ctx, cancel := l.bounded(context.WithoutCancel(ctx)) // others wait for the result
	defer cancel()
	h.mu.Lock()
	known := h.oldestFirst()
	h.mu.Unlock()
	kept, intact, err := l.compare(ctx, h.partition, known)
	switch {
	case apiCode(err) == codeNoStream:
		err = missingStream(h.partition)
		h.mu.Lock()
		h.missing = err
		h.mu.Unlock()
		l.verifyHistory(h) // until the stream is there again
		return err
	case err != nil:
		return err
	case !intact:
		l.forgetLost(h, kept)
	case h.connection.Load() != connection:
		h.doubt(kept)
	}
	h.mu.Lock()
	h.missing = nil
	h.mu.Unlock()
	h.connection.Store(connection)
	return nil
}

// codeNoStream is the error code of a stream that does not exist.
const codeNoStream jetstream.ErrorCode = 10059

// compare reports whether known, oldest first, are stored. kept is the newest of them up to which
// all are; 0 if there is none. A message without an answer was erased
// with its run if the stream is past it.
func (l *Log) compare(ctx context.Context, p int, known []mark) (kept uint64, intact bool, err error) {
	if len(known) == 0 { // nothing to compare; the user of a role that reads no runs may request no message
		return 0, true, nil
	}
	for _, k := range slices.Backward(known) { // usually one read
		state, err := l.marked(ctx, p, k)
		if err != nil {
			return 0, false, err
		}
		if state == markStored {
			return k.sequence, true, nil
		}
		if state == markReplaced {
			break
		}
	}
	intact = true
	for _, k := range known {
		state, err := l.marked(ctx, p, k)
		switch {
		case err != nil:
			return 0, false, err
		case state == markReplaced:
			return kept, false, nil
		case state == markStored:
			kept = k.sequence
		}
	}
	return kept, intact, nil
}

// markState is the state of a marked message.
type markState int

const (
	markStored   markState = iota + 1
	markErased             // the stream is past it
	markReplaced           // the stream has another message there, or ends before it
)

// lagWait is how long a new leader may take to apply the stored messages.
const lagWait = time.Second

// marked returns the state of a mark, as the stream's leader knows it.
func (l *Log) marked(ctx context.Context, p int, k mark) (markState, error) {
	past := false // a former answer had a stream that is past the mark
	for end := time.Now().Add(lagWait); ; {
		m, err := l.leaderRead(ctx, runsStream(p), fmt.Sprintf(`{"seq":%d}`, k.sequence))
		switch {
		case err != nil:
			return 0, err
		case m.Sequence != 0 && markOf(m.Sequence, m.Subject, m.Data) == k:
			return markStored, nil
		case m.Sequence != 0:
			return markReplaced, nil
		case past:
			return markErased, nil
		}
		stream, err := asked(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.Stream(ctx, runsStream(p)) })
		if err != nil {
			return 0, err
		}
		switch last := stream.CachedInfo().State.LastSeq; {
		case last >= k.sequence:
			past = true // by a message that was stored between the two answers, or before
			continue
		case stream.CachedInfo().Config.Replicas == 1 || time.Now().After(end):
			return markReplaced, nil
		}
		if !pause(ctx, 10*lagPause) {
			return 0, context.Cause(ctx)
		}
	}
}

// forgetLost drops what this process knows of the messages above kept.
func (l *Log) forgetLost(h *history, kept uint64) {
	h.mu.Lock()
	before := h.marks.newest.sequence
	h.cut(kept)
	h.newest.Store(h.marks.newest.sequence)
	h.kept.Store(kept)
	h.doubt(kept)
	h.epoch.Add(1)
	close(h.lost)
	h.lost = make(chan struct{})
	h.mu.Unlock()
	l.cache.lose(h.partition, kept)
	l.floors.lose(h.partition)
	l.logger.Error("the bus has lost its newest records: it was stopped without power, or restored from an older backup",
		"stream", runsStream(h.partition), "known", before, "kept", kept)
	l.announceLoss()
	l.interrupt()
}

// genuine reports whether a stream still has a message that was queued in this process.
func (l *Log) genuine(ctx context.Context, p int, sequence uint64, subject string, data []byte) (bool, error) {
	m, err := l.leaderRead(ctx, runsStream(p), fmt.Sprintf(`{"seq":%d}`, sequence))
	if err != nil {
		return false, err
	}
	return m.Sequence == sequence && markOf(sequence, m.Subject, m.Data) == markOf(sequence, subject, data), nil
}

// verifyHistory verifies the marks of a partition without a write: after a reconnect, and
// every second while its stream is missing.
func (l *Log) verifyHistory(h *history) {
	if !h.following.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer h.following.Store(false)
		for again := h.gone() != nil; ; again = h.gone() != nil {
			err := l.verify(context.Background(), h, l.reconnects(), again)
			if err == nil && h.connection.Load() == l.reconnects() {
				return
			}
			select {
			case <-l.closed:
				return
			case <-time.After(verifyPause):
			}
		}
	}()
}

// verifyPause is the wait before the marks of a stream that cannot be read are verified
// again.
const verifyPause = 500 * time.Millisecond

func missingStream(p int) error {
	return fmt.Errorf("stream %s is missing: %w", runsStream(p), errNotProvisioned)
}
