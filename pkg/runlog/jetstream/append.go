package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// Headers of a record. With them a run can be failed even if its record cannot be
// decoded.
const (
	headerVersion = "Hm-Version"
	headerSchema  = "Hm-Schema"
	headerCursor  = "Hm-Cursor"
)

// Error codes of a refused fence. The second one comes from replicated streams and may
// also mean that another write is in flight.
const (
	codeWrongSequence           jetstream.ErrorCode = 10071
	codeWrongSequenceReplicated jetstream.ErrorCode = 10164
)

// retryPause is the wait before an undecided append is sent again.
const retryPause = 5 * time.Millisecond

// fenced returns the message of a write to a run's log. All such writes are made here.
// It carries the span of ctx.
func (l *Log) fenced(ctx context.Context, run runlog.Run, rec *harnessv1.Record) (*nats.Msg, error) {
	data, err := runlog.Encode(rec)
	if err != nil {
		return nil, err
	}
	p := l.partition(run)
	subject := runlog.JournalSubject(p, run)
	if step := rec.GetStep(); step != nil {
		subject = runlog.StepSubject(p, run, step.GetTo())
	}
	header := runlog.HeaderOf(rec)
	msg := &nats.Msg{
		Subject: subject,
		Data:    data,
		Header: nats.Header{
			jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(rec.GetPrevSequence(), 10)},
			jetstream.ExpectedLastSubjSeqSubjHeader: {runlog.LogFilter(p, run)},
			headerVersion:                           {strconv.FormatUint(header.Version, 10)},
			headerSchema:                            {strconv.FormatUint(uint64(header.Schema), 10)},
			headerCursor:                            {strconv.FormatUint(header.InboxCursor, 10)},
		},
	}
	if traceparent := runtrace.Traceparent(spans.Ref(ctx)); traceparent != "" {
		msg.Header[runtrace.Header] = []string{traceparent}
	}
	return msg, nil
}

// Append stores rec after the record that it names as its predecessor.
func (l *Log) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	run := runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()}
	if err := runlog.Appendable(run, rec); err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	msg, err := l.fenced(ctx, run, rec)
	if err != nil {
		return 0, err
	}
	check := func(ctx context.Context) error { return l.checkPredecessor(ctx, run, rec) }
	end := time.Now().Add(l.timeout)
	ack, lost, err := l.write(ctx, l.partition(run), msg, check)
	if err == nil && !lost { // nearly always: a try has a bound that ends earlier, so this needs no second timer
		l.remember(run, ack.Sequence, rec, msg)
		return ack.Sequence, nil
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	for {
		switch {
		case err == nil && lost:
			err = l.checkStored(ctx, run, rec, ack.Sequence)
			if err == nil {
				return ack.Sequence, nil
			}
		case err == nil:
			l.remember(run, ack.Sequence, rec, msg)
			return ack.Sequence, nil
		}
		if errors.Is(err, errPredecessor) {
			return 0, fmt.Errorf("version %d of %s: %w: %w", rec.GetVersion(), run, runlog.ErrFenced, err)
		}
		if !undecided(err) {
			if apiCode(err) == codeFull {
				l.full.Store(time.Now().UnixNano())
			}
			return 0, refused("append to "+run.String(), err)
		}
		l.counts.countUndecided(err)
		sequence, resolved, serr := l.resolve(ctx, run, rec)
		switch {
		case serr != nil:
			return 0, l.unavailable("append to "+run.String(), fmt.Errorf("%w; reading its result: %w", err, serr))
		case resolved && sequence == 0:
			return 0, fmt.Errorf("version %d of %s: %w", rec.GetVersion(), run, runlog.ErrFenced)
		case resolved:
			l.counts.landed.Add(1)
			l.remember(run, sequence, rec, msg)
			return sequence, nil
		}
		select { // not stored: the same bytes may be sent again
		case <-ctx.Done():
			return 0, l.unavailable("append to "+run.String(), err)
		case <-time.After(retryPause):
			l.counts.resent.Add(1)
		}
		ack, lost, err = l.write(ctx, l.partition(run), msg, check)
	}
}

// countUndecided counts an undecided append.
func (c *counters) countUndecided(err error) {
	switch apiCode(err) {
	case codeWrongSequence:
		c.fenced.Add(1)
	case codeWrongSequenceReplicated:
		c.fencedReplicated.Add(1)
	default:
		c.unanswered.Add(1)
	}
}

// tries is how often a write without an answer is sent within one timeout.
const tries = 3

// refused wraps a failure after which the same bytes need not be sent again.
func refused(op string, err error) error {
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%s: %w: %w", op, runlog.ErrTooLarge, err)
	}
	if apiCode(err) == codeFull {
		return unavailable(op, errFull)
	}
	return unavailable(op, err)
}

// codeFull is the error code of a full stream.
const codeFull jetstream.ErrorCode = 10077

var errFull error = &runlog.Stall{Text: "the stream is full: raise its limit with `harness provision --max-bytes`"}

// undecided reports whether an append may have been stored, now or by an earlier try.
func undecided(err error) bool {
	switch apiCode(err) {
	case codeWrongSequence, codeWrongSequenceReplicated:
		return true
	case 0: // no answer of the stream: timeout, no responders, connection lost
		return !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrMaxPayload)
	}
	return false
}

// resolve reads the record at rec's version. sequence is rec's own if rec is stored. It
// is 0 with resolved if another record is stored, and 0 without resolved if none is.
func (l *Log) resolve(ctx context.Context, run runlog.Run, rec *harnessv1.Record) (sequence uint64, resolved bool, err error) {
	view, err := l.View(ctx, run, rec.GetPrevSequence())
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return 0, false, nil
	case errors.Is(err, runlog.ErrLost):
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	if view.Newest.Header.Version < rec.GetVersion() {
		// The log has passed the fence, so nothing can be stored after it any more.
		return 0, view.Newest.Sequence > rec.GetPrevSequence(), nil
	}
	if view.Newest.Header.Version == rec.GetVersion() && view.Newest.Record == nil {
		return 0, true, nil // a record that this program cannot read is not its own
	}
	entries, err := runlog.Back(ctx, l, view.Newest, rec.GetVersion()-1)
	if errors.Is(err, runlog.ErrNotFound) {
		// The record was erased. Its writer is unknown, but the log is past it.
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	at := entries[0]
	if mine, theirs := rec.GetWriter(), at.Record.GetWriter(); mine.GetNonce() == theirs.GetNonce() && mine.GetInstance() == theirs.GetInstance() {
		return at.Sequence, true, nil
	}
	return 0, true, nil
}

func (l *Log) remember(run runlog.Run, sequence uint64, rec *harnessv1.Record, msg *nats.Msg) {
	header := runlog.HeaderOf(rec)
	header.Traceparent = single(msg.Header[runtrace.Header])
	l.cache.put(runlog.Entry{Run: run, Sequence: sequence, Header: header, Record: rec}, l.partition(run), len(msg.Data))
}

// AppendInbox stores an input after the newest one.
func (l *Log) AppendInbox(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, after uint64) (uint64, bool, error) {
	if !run.Valid() {
		return 0, false, fmt.Errorf("input: run %q has an invalid name", run)
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	subject := runlog.InboxSubject(l.partition(run), run)
	for {
		last, err := l.LastInbox(ctx, run)
		if err != nil {
			return 0, false, err
		}
		if last > after {
			var same uint64
			err := l.walkInbox(ctx, run, after, last, func(s *harnessv1.InboxItem) bool {
				if s.GetId() == item.GetId() {
					same = s.GetSequence()
				}
				return same == 0
			})
			if err != nil && !errors.Is(err, runlog.ErrNotFound) || same != 0 {
				return same, same != 0, err
			}
			// The item before is gone: the run is being erased. If it was the newest
			// item, the fence refuses the write.
		}
		item := proto.CloneOf(item)
		item.PrevSequence, item.Sequence, item.Unsealed = last, 0, false
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(item)
		if err != nil {
			return 0, false, fmt.Errorf("encode input: %w", err)
		}
		if len(data) > runlog.MaxRecord {
			return 0, false, fmt.Errorf("input of %d bytes exceeds the limit of %d: %w", len(data), runlog.MaxRecord, runlog.ErrTooLarge)
		}
		msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
			jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(last, 10)},
			jetstream.ExpectedLastSubjSeqSubjHeader: {subject},
		}}
		l.sealInput(run, msg)
		ack, err := l.publish(ctx, msg)
		if err == nil {
			l.saw(l.partition(run), ack.Sequence, subject, data)
			return ack.Sequence, false, nil
		}
		if !undecided(err) {
			return 0, false, refused("input to "+run.String(), err)
		}
		select { // another sender was first, or this write was stored without an answer: read again
		case <-ctx.Done():
			return 0, false, l.unavailable("input to "+run.String(), err)
		case <-time.After(retryPause):
		}
	}
}

// errPredecessor means that a record cannot be stored, because the one that it is to
// follow is not stored.
var errPredecessor = errors.New("the record before it is not stored any more")

// checkPredecessor returns errPredecessor unless the record that rec follows is stored:
// the fence compares sequences, which a bus that has lost records uses again. A worker
// has usually read or written that record, so it is in the cache.
func (l *Log) checkPredecessor(ctx context.Context, run runlog.Run, rec *harnessv1.Record) error {
	sequence := rec.GetPrevSequence()
	if sequence == 0 {
		return nil
	}
	prev, ok := l.cache.get(l.partition(run), sequence)
	if !ok || prev.Run != run {
		m, err := l.at(ctx, run, sequence)
		if errors.Is(err, runlog.ErrNotFound) {
			return fmt.Errorf("%w: %w", errPredecessor, runlog.ErrLost)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errNotSent, err)
		}
		if prev, _, err = l.decode(m); err != nil {
			return fmt.Errorf("%w: %w", errPredecessor, err)
		}
	}
	if prev.Run != run || !runlog.Follows(rec, prev) {
		return fmt.Errorf("%w: sequence %d has another record", errPredecessor, sequence)
	}
	return nil
}

// checkStored decides about a record that was stored at sequence while the bus lost records.
// If it does not follow the stored records, checkStored deletes it and returns errPredecessor.
func (l *Log) checkStored(ctx context.Context, run runlog.Run, rec *harnessv1.Record, sequence uint64) error {
	p := l.partition(run)
	if _, err := l.gate(ctx, p); err != nil {
		return err
	}
	err := l.checkPredecessor(ctx, run, rec)
	if !errors.Is(err, errPredecessor) {
		return err
	}
	m, rerr := l.leaderRead(ctx, runsStream(p), fmt.Sprintf(`{"seq":%d}`, sequence))
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	stored := &harnessv1.Record{}
	if proto.Unmarshal(m.Data, stored) == nil && stored.GetWriter().GetNonce() == rec.GetWriter().GetNonce() {
		l.cache.drop(p, sequence)
		return errors.Join(err, l.delete(ctx, runsStream(p), sequence))
	}
	return err
}
