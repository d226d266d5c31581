package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// chunkSize bounds one message of a blob; the server's default limit is 1 MiB.
const chunkSize = 512 << 10

// headerChunks is on the first message of a blob that has more than one.
const headerChunks = "Hm-Chunks"

// blobLag is how long a replica may lag behind a blob whose reference is
// already committed before the blob counts as missing.
const blobLag = 2 * time.Second

// PutBlob stores data under its digest: the parts first, so that a blob whose
// first message is there is whole.
func (l *Log) PutBlob(ctx context.Context, run runlog.Run, data []byte) (*harnessv1.BlobRef, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	ref := runlog.RefOf(data)
	p := l.partition(run)
	if len(data) <= chunkSize {
		return ref, l.once(ctx, &nats.Msg{Subject: runlog.BlobSubject(p, run, ref.GetDigest(), -1), Data: data, Header: nats.Header{}})
	}
	chunks := 0
	for rest := data; len(rest) > 0; chunks++ {
		n := min(len(rest), chunkSize)
		msg := &nats.Msg{Subject: runlog.BlobSubject(p, run, ref.GetDigest(), chunks), Data: rest[:n], Header: nats.Header{}}
		if err := l.once(ctx, msg); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return ref, l.once(ctx, &nats.Msg{
		Subject: runlog.BlobSubject(p, run, ref.GetDigest(), -1),
		Header:  nats.Header{headerChunks: {strconv.Itoa(chunks)}},
	})
}

// once stores a message unless its subject already has one.
func (l *Log) once(ctx context.Context, msg *nats.Msg) error {
	msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{"0"}
	msg.Header[jetstream.ExpectedLastSubjSeqSubjHeader] = []string{msg.Subject}
	for {
		_, err := l.js.PublishMsg(ctx, msg)
		code := apiCode(err)
		switch {
		case err == nil || code == codeWrongSequence:
			return nil // the same digest means the same bytes
		case code == codeWrongSequenceReplicated:
			// Stored, or a write in flight that may still fail: look.
			if _, gerr := l.getBlob(ctx, msg.Subject); gerr == nil {
				return nil
			}
		case !undecided(err):
			return unavailable("store blob", err)
		}
		if !pause(ctx, retryPause) {
			return unavailable("store blob", err)
		}
	}
}

func (l *Log) getBlob(ctx context.Context, subject string) (*nats.Msg, error) {
	address, err := runlog.ParseSubject(subject)
	if err != nil {
		return nil, err
	}
	return l.get(ctx, directSubject(blobsStream(address.Partition))+"."+subject, nil)
}

// Blob reads a blob and checks that its bytes have the digest asked for.
func (l *Log) Blob(ctx context.Context, run runlog.Run, digest string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, min(l.timeout, blobLag))
	defer cancel()
	p := l.partition(run)
	read := func(chunk int) (*nats.Msg, error) {
		for {
			m, err := l.getBlob(ctx, runlog.BlobSubject(p, run, digest, chunk))
			if err == nil {
				return m, nil
			}
			if !errors.Is(err, errMissing) {
				return nil, unavailable("blob of "+run.String(), err)
			}
			if !pause(ctx, 10*lagPause) {
				return nil, fmt.Errorf("blob %.12s of %s: %w", digest, run, runlog.ErrNotFound)
			}
		}
	}
	first, err := read(-1)
	if err != nil {
		return nil, err
	}
	data := first.Data
	if n := first.Header.Get(headerChunks); n != "" {
		chunks, err := strconv.Atoi(n)
		if err != nil {
			return nil, fmt.Errorf("blob %.12s of %s: %d chunks: %w", digest, run, chunks, err)
		}
		for i := range chunks {
			m, err := read(i)
			if err != nil {
				return nil, err
			}
			data = append(data, m.Data...)
		}
	}
	if got := runlog.Digest(data); got != digest {
		return nil, fmt.Errorf("blob %.12s of %s is damaged: its bytes have digest %.12s", digest, run, got)
	}
	return data, nil
}
