package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// A server that cannot write to its disk acknowledges nothing, and does not answer the
// publisher either. A single server refuses all later writes to that stream, also when
// there is room again, until it is restarted. A replicated one switches its JetStream
// off, until it is restarted; the other two continue. Reads work as long as JetStream does.

// stalls are the streams that do not acknowledge writes.
type stalls struct {
	count atomic.Int32 // the length of at, to be read without the lock

	mu      sync.Mutex
	at      map[string]stall
	probing map[string]bool // streams that a goroutine probes
	closed  bool
}

// stall is a stream that does not acknowledge writes.
type stall struct {
	since time.Time // when the first of these writes was sent
	why   error     // the result of the newest
}

// record notes a write without an acknowledgement. It calls probe, which must not wait,
// unless a goroutine probes the stream already.
func (s *stalls) record(stream string, sent time.Time, why error, probe func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.at == nil {
		s.at, s.probing = map[string]stall{}, map[string]bool{}
	}
	have, known := s.at[stream]
	if !known {
		have.since = sent
	}
	have.why = why
	s.at[stream] = have
	s.count.Store(int32(len(s.at))) //nolint:gosec // streams of one bus
	if !s.probing[stream] {
		s.probing[stream] = true
		probe()
	}
}

// end records that a stream stores again.
func (s *stalls) end(stream string) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, stream)
	s.count.Store(int32(len(s.at))) //nolint:gosec // streams of one bus
}

// lasts reports whether a stream still needs probes. After false, the next write without
// an acknowledgement starts them again.
func (s *stalls) lasts(stream string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, stalled := s.at[stream]; stalled {
		return true
	}
	delete(s.probing, stream)
	return false
}

// close prevents further probes.
func (s *stalls) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// oldest returns the stream that has not stored for longest, and for at least the bound.
func (s *stalls) oldest(bound time.Duration) (stream string, oldest stall, found bool) {
	if s.count.Load() == 0 {
		return "", stall{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.at {
		if time.Since(one.since) < bound || found && !one.since.Before(oldest.since) {
			continue
		}
		stream, oldest, found = name, one, true
	}
	return stream, oldest, found
}

// Writable returns why nothing is stored at the moment, as a *runlog.Stall: a full
// stream, a stream that does not acknowledge writes, or a JetStream that does not answer.
// It returns nil if there is no reason known; it does not try it.
func (l *Log) Writable() error {
	if time.Since(time.Unix(0, l.full.Load())) < fullFor {
		return errFull
	}
	if err := l.service.err(l.url); err != nil {
		return err
	}
	// A little less than the bound of a write, so that the first one names the reason.
	stream, oldest, found := l.stalls.oldest(l.timeout * 9 / 10)
	if !found {
		return nil
	}
	remedy := "after a full disk, make room and restart NATS"
	if l.renew != nil {
		remedy = "work continues by itself once there is room"
	}
	return &runlog.Stall{Text: fmt.Sprintf("NATS stores nothing since %s: a write to stream %s is not acknowledged (%v); %scheck the free space on its disk: %s",
		oldest.since.UTC().Format(time.TimeOnly), stream, oldest.why, l.electing(), remedy)}
}

// electing names the other cause of writes without an answer, which only a replicated stream has.
func (l *Log) electing() string {
	if l.replicas > 1 {
		return "its servers elect a leader, which takes up to ten seconds, or too few of them run; otherwise "
	}
	return ""
}

// unavailable wraps the failure of a request whose time is over. If nothing is stored at
// the moment, that is the reason.
func (l *Log) unavailable(op string, err error) error {
	if stall := l.Writable(); stall != nil {
		err = stall
	}
	return unavailable(op, err)
}

// errUnanswered replaces the client's error for a write without an answer.
var errUnanswered = errors.New("no answer")

// codeNoResources is the error code of a server whose limit of storage is used up.
const codeNoResources jetstream.ErrorCode = 10023

// send sends a message once and records whether its stream stores.
func (l *Log) send(ctx context.Context, msg *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	sent := time.Now()
	ack, err := l.js.PublishMsg(ctx, msg, options...)
	if err == nil {
		l.stalls.end(ack.Stream)
		return ack, nil
	}
	if why := notStored(err); why != nil && !errors.Is(ctx.Err(), context.Canceled) && l.denied.err(l.url) == nil {
		l.stalled(msg.Subject, sent, why)
	}
	return nil, err
}

// notStored returns why a stream did not store a write that nothing is wrong with; nil
// for other errors.
func notStored(err error) error {
	switch apiCode(err) {
	case codeNoResources, codeNoStorage:
		return err
	case 0:
		for _, other := range []error{nats.ErrConnectionClosed, nats.ErrReconnectBufExceeded, nats.ErrMaxPayload, context.Canceled} {
			if errors.Is(err, other) {
				return nil
			}
		}
		return errUnanswered
	}
	return nil
}

// stalled records a write that was not acknowledged, and probes its stream until one is.
func (l *Log) stalled(subject string, sent time.Time, why error) {
	stream, probe, ok := probeOf(subject)
	if ok {
		l.stalls.record(stream, sent, why, func() { l.running.Go(func() { l.probe(stream, probe) }) })
	}
}

// probeOf returns the stream of a subject, and the subject of its probes. No consumer and
// no reader of runs receives those, and each role that writes to the stream may publish
// them.
func probeOf(subject string) (stream, probe string, ok bool) {
	parts := strings.SplitN(subject, ".", 4)
	if len(parts) < 4 || parts[0] != "hm" {
		return "", "", false
	}
	prefix, ok := map[string]string{"run": "RUNS_", "blob": "BLOBS_", "timer": "TIMERS_"}[parts[1]]
	return prefix + parts[2], strings.Join(parts[:3], ".") + ".probe", ok
}

// Pauses between two probes of a stream. They double, and vary by a quarter, so that the
// processes of a mesh do not probe at the same time.
const (
	firstProbe = 250 * time.Millisecond
	lastProbe  = 5 * time.Second
)

// probeSize is the size of a probe in bytes: a full disk still has room for a few bytes
// in the last pages of its files.
const probeSize = 32 << 10

// probe writes a message to a stream until one is stored, which it then deletes.
func (l *Log) probe(stream, subject string) {
	for pause := firstProbe; l.stalls.lasts(stream); pause = min(2*pause, lastProbe) {
		next := time.NewTimer(pause + time.Duration(rand.Int64N(int64(pause/4))))
		select {
		case <-l.closed:
			next.Stop()
			return
		case <-next.C:
		}
		if (l.Connected() != nil || !l.stores(subject)) && l.renew != nil {
			l.renew()
		}
	}
}

// stores reports whether the stream of a probe stores it now, and records that.
func (l *Log) stores(subject string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout/tries)
	defer cancel()
	ack, err := l.send(ctx, &nats.Msg{Subject: subject, Data: make([]byte, probeSize)})
	if err == nil {
		l.forgetProbe(ack)
		return true
	}
	if apiCode(err) == 0 || notStored(err) != nil {
		return false
	}
	// The stream answers: it refuses the probe for another reason.
	if apiCode(err) == codeFull {
		l.full.Store(time.Now().UnixNano())
	}
	if stream, _, ok := probeOf(subject); ok {
		l.stalls.end(stream)
	}
	return true
}

// forgetProbe deletes a probe that was stored. One that remains is never read.
func (l *Log) forgetProbe(ack *jetstream.PubAck) {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout/tries)
	defer cancel()
	if err := l.delete(ctx, ack.Stream, ack.Sequence); err != nil {
		l.logger.Debug("a probe remains stored", "stream", ack.Stream, "sequence", ack.Sequence, "error", err)
	}
}
