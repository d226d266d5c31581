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

// valuesStream is the stream of what outlives runs. It has one message a subject.
const valuesStream = "VALUES"

// valuesShare is the part of a RUNS stream's bytes that VALUES has, at least minBytes.
const valuesShare = 64

// values returns the configuration of VALUES.
func values(layout Layout) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: valuesStream, Subjects: []string{"hm.value.>"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxBytes: max(layout.MaxBytes/valuesShare, minBytes), MaxMsgsPerSubject: 1, Replicas: layout.Replicas,
		Metadata: map[string]string{partitionsKey: strconv.Itoa(max(layout.Partitions, 1))}, AllowDirect: true,
	}
}

// Value reads the value of a key from the leader.
func (l *Log) Value(ctx context.Context, key runlog.ValueKey) (data []byte, revision uint64, err error) {
	if !key.Valid() {
		return nil, 0, fmt.Errorf("read value: invalid key %q", key)
	}
	m, err := l.leaderRead(ctx, valuesStream, fmt.Sprintf(`{"last_by_subj":%q}`, runlog.ValueSubject(key)))
	switch {
	case apiCode(err) == codeNoStream:
		return nil, 0, fmt.Errorf("stream %s is missing: run `harness provision` once: %w", valuesStream, runlog.ErrNotFound)
	case err != nil:
		return nil, 0, unavailable("read value "+key.String(), err)
	case m.Sequence == 0:
		return nil, 0, nil
	}
	return append([]byte{}, m.Data...), m.Sequence, nil
}

// PutValue replaces the value of a key if it has the revision. After an undecided answer it
// reads from the leader whether its message is stored.
func (l *Log) PutValue(ctx context.Context, key runlog.ValueKey, data []byte, revision uint64) (uint64, error) {
	switch {
	case !key.Valid():
		return 0, fmt.Errorf("store value: invalid key %q", key)
	case len(data) > runlog.MaxRecord:
		return 0, fmt.Errorf("value %s: %d bytes exceed the limit of %d: %w", key, len(data), runlog.MaxRecord, runlog.ErrTooLarge)
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	subject, nonce := runlog.ValueSubject(key), strconv.FormatUint(rand.Uint64(), 36)
	msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(revision, 10)},
		jetstream.ExpectedLastSubjSeqSubjHeader: {subject},
		headerNonce:                             {nonce},
	}}
	for {
		ack, err := l.publish(ctx, msg)
		switch {
		case err == nil:
			return ack.Sequence, nil
		case !undecided(err):
			if apiCode(err) == codeFull {
				l.full.Store(time.Now().UnixNano())
			}
			return 0, refused("store value "+key.String(), err)
		}
		have, rerr := l.leaderRead(ctx, valuesStream, fmt.Sprintf(`{"last_by_subj":%q}`, subject))
		switch {
		case rerr != nil:
		case have.Sequence > 0 && have.header().Get(headerNonce) == nonce:
			return have.Sequence, nil
		case have.Sequence != revision:
			return 0, fmt.Errorf("value %s has revision %d, not %d: %w", key, have.Sequence, revision, runlog.ErrFenced)
		}
		if !pause(ctx, retryPause) {
			return 0, l.unavailable("store value "+key.String(), errors.Join(err, rerr))
		}
	}
}
