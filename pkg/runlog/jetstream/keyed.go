package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Headers of a job and of a keyed blob.
const (
	headerFirst = "Hm-First" // the stream sequence of the first record of its run
	headerNonce = "Hm-Nonce" // differs between writes
)

// keyedWrite is a write of a job or of a keyed blob.
type keyedWrite struct {
	run    runlog.Run
	first  uint64
	stream string
	msg    *nats.Msg
}

func newKeyedWrite(run runlog.Run, first uint64, stream, subject string, data []byte) keyedWrite {
	return keyedWrite{run: run, first: first, stream: stream, msg: &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader:     {"0"},
		jetstream.ExpectedLastSubjSeqSubjHeader: {subject},
		headerFirst:                             {strconv.FormatUint(first, 10)},
		headerNonce:                             {strconv.FormatUint(rand.Uint64(), 36)},
	}}}
}

// putKeyed stores a message unless its subject has one, and reports whether this call
// did.
//
// It reads the run's first record again after the write. An erasure lists jobs and keyed
// blobs again after it has deleted that record. So either this read finds the record,
// and the erasure finds the message, or this read does not find it, and the message is
// deleted here. All of these reads are made by leaders. The read before the write keeps
// messages of old runs from being stored at all.
func (l *Log) putKeyed(ctx context.Context, k keyedWrite) (stored bool, err error) {
	if err := l.checkStarted(ctx, k); err != nil {
		return false, err
	}
	stored, err = l.storeKeyed(ctx, k)
	if err != nil && ctx.Err() == nil {
		return false, err
	}
	// Also for a caller that has left: the message must not stay. It may be on its way: a
	// second write of the same has its result only after the first was stored or refused.
	if err != nil {
		if _, err := l.storeKeyed(context.WithoutCancel(ctx), k); err != nil {
			return false, err
		}
	}
	if err := l.checkStarted(context.WithoutCancel(ctx), k); err != nil {
		return false, err
	}
	return stored, err
}

// checkStarted returns nil if the run that k is for has its first record. Otherwise it
// deletes the message under k's subject and returns ErrNotFound.
func (l *Log) checkStarted(ctx context.Context, k keyedWrite) error {
	started, err := l.started(ctx, k.run, k.first)
	if err == nil && !started {
		err = l.removeKeyed(ctx, k.stream, k.msg.Subject, k.first, k.first)
		if err == nil {
			return fmt.Errorf("run %s with the first record %d: %w", k.run, k.first, runlog.ErrNotFound)
		}
	}
	if err != nil {
		return unavailable("store "+k.msg.Subject, err)
	}
	return nil
}

// started reports whether the first record of a run has the given sequence.
func (l *Log) started(ctx context.Context, run runlog.Run, first uint64) (bool, error) {
	if first == 0 {
		return false, nil
	}
	m, err := l.leaderRead(ctx, runsStream(l.partition(run)), fmt.Sprintf(`{"seq":%d}`, first))
	if err != nil || m.Sequence == 0 {
		return false, err
	}
	address, err := runlog.ParseSubject(m.Subject)
	if err != nil || address.Run != run {
		return false, nil //nolint:nilerr // a foreign message
	}
	header, err := parseHeader(m.header()) // only records have these headers
	return err == nil && header.Version == 1, nil
}

// storeKeyed stores a message unless its subject has one of the same run, and reports
// whether this call did.
func (l *Log) storeKeyed(ctx context.Context, k keyedWrite) (stored bool, err error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	for {
		_, err := l.publish(ctx, k.msg)
		switch {
		case err == nil:
			return true, nil
		case !undecided(err):
			if apiCode(err) == codeFull {
				l.full.Store(time.Now().UnixNano())
			}
			return false, refused("store "+k.msg.Subject, err)
		}
		// It is stored, or another one is, or a write is in flight that may still fail.
		have, first, rerr := l.keyedAt(ctx, k.stream, k.msg.Subject)
		switch {
		case rerr != nil || have.Sequence == 0:
		case have.header().Get(headerNonce) == k.msg.Header.Get(headerNonce):
			return true, nil
		case first >= k.first:
			return false, nil
		default: // left by an earlier run of this name
			rerr = l.delete(ctx, k.stream, have.Sequence)
		}
		if !pause(ctx, retryPause) {
			return false, l.unavailable("store "+k.msg.Subject, errors.Join(err, rerr))
		}
	}
}

// keyedAt returns the message on a subject as the leader knows it, and the sequence of
// the first record of its run; 0 if the message does not name it.
func (l *Log) keyedAt(ctx context.Context, stream, subject string) (leaderMessage, uint64, error) {
	m, err := l.leaderRead(ctx, stream, fmt.Sprintf(`{"last_by_subj":%q}`, subject))
	if err != nil || m.Sequence == 0 {
		return leaderMessage{}, 0, err
	}
	first, err := strconv.ParseUint(m.header().Get(headerFirst), 10, 64)
	if err != nil {
		first = 0
	}
	return m, first, nil
}

// removeKeyed deletes the messages on a subject of runs whose first record has a
// sequence in [from, to].
func (l *Log) removeKeyed(ctx context.Context, stream, subject string, from, to uint64) error {
	for {
		m, first, err := l.keyedAt(ctx, stream, subject)
		if err != nil || m.Sequence == 0 || first < from || first > to {
			return err
		}
		if err := l.delete(ctx, stream, m.Sequence); err != nil {
			return err
		}
	}
}

// PutBlobAs stores a blob under a key.
func (l *Log) PutBlobAs(ctx context.Context, run runlog.Run, first uint64, key string, data []byte) (bool, error) {
	if err := checkKey(run, key); err != nil {
		return false, fmt.Errorf("store blob: %w", err)
	}
	if len(data) > runlog.MaxKeyedBlob {
		return false, fmt.Errorf("blob %s of %s: %d bytes exceed the limit of %d: %w", key, run, len(data), runlog.MaxKeyedBlob, runlog.ErrTooLarge)
	}
	p := l.partition(run)
	stored, err := l.putKeyed(ctx, newKeyedWrite(run, first, blobsStream(p), runlog.KeyedBlobSubject(p, run, key), data))
	if err != nil {
		return false, err
	}
	if err := l.nc.Publish(runlog.JobEndSubject(run, key), nil); err != nil {
		l.logger.Debug("the end of a job is not reported", "run", run.String(), "key", key, "error", err)
	}
	return stored, nil
}

// BlobAs reads the blob with a key from the leader.
func (l *Log) BlobAs(ctx context.Context, run runlog.Run, key string) ([]byte, error) {
	if err := checkKey(run, key); err != nil {
		return nil, fmt.Errorf("read blob: %w", err)
	}
	p := l.partition(run)
	m, _, err := l.keyedAt(ctx, blobsStream(p), runlog.KeyedBlobSubject(p, run, key))
	switch {
	case err != nil:
		return nil, unavailable("blob "+key+" of "+run.String(), err)
	case m.Sequence == 0:
		return nil, nil
	}
	return append([]byte{}, m.Data...), nil // not nil, also if it is empty
}

func checkKey(run runlog.Run, key string) error {
	switch {
	case !run.Valid():
		return fmt.Errorf("run %q has an invalid name", run)
	case !runlog.ValidKey(key):
		return fmt.Errorf("key %q of %s: expected 1 to 64 characters of [a-z0-9-]", key, run)
	}
	return nil
}
