package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// chunkSize bounds one message of a blob. The server's default limit is 1 MiB.
const chunkSize = 512 << 10

// headerChunks is a header of the first message of a blob that has more than one.
const headerChunks = "Hm-Chunks"

// blobLag is how long a replica may lag before a blob whose reference is committed
// counts as missing.
const blobLag = 2 * time.Second

// PutBlob stores data under its digest. It stores the further chunks first, so a blob
// that has its first message is complete.
func (l *Log) PutBlob(ctx context.Context, run runlog.Run, data []byte) (*harnessv1.BlobRef, error) {
	if !run.Valid() {
		return nil, fmt.Errorf("store blob: run %q has an invalid name", run)
	}
	ref := content.Ref(data)
	p := l.partition(run)
	if len(data) <= chunkSize {
		if err := l.once(ctx, &nats.Msg{Subject: runlog.BlobSubject(p, run, ref.GetDigest(), -1), Data: data, Header: nats.Header{}}); err != nil {
			return nil, err
		}
		return ref, nil
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
	err := l.once(ctx, &nats.Msg{
		Subject: runlog.BlobSubject(p, run, ref.GetDigest(), -1),
		Header:  nats.Header{headerChunks: {strconv.Itoa(chunks)}},
	})
	if err != nil {
		return nil, err
	}
	return ref, nil
}

// once stores a message unless its subject has one. Each message of a blob has the time
// of one request, so that a large blob does not fail for its size.
func (l *Log) once(ctx context.Context, msg *nats.Msg) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{"0"}
	msg.Header[jetstream.ExpectedLastSubjSeqSubjHeader] = []string{msg.Subject}
	for {
		_, err := l.publish(ctx, msg)
		code := apiCode(err)
		switch {
		case err == nil || code == codeWrongSequence:
			return nil // the same digest means the same bytes
		case code == codeWrongSequenceReplicated:
			// It is stored, or another write is in flight that may still fail: read it.
			if _, gerr := l.getBlob(ctx, msg.Subject); gerr == nil {
				return nil
			}
		case !undecided(err):
			return refused("store blob", err)
		}
		if !pause(ctx, retryPause) {
			return l.unavailable("store blob", err)
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

// Blob reads a blob and checks its digest.
func (l *Log) Blob(ctx context.Context, run runlog.Run, digest string) ([]byte, error) {
	p := l.partition(run)
	missing := fmt.Errorf("blob %.12s of %s: %w", digest, run, runlog.ErrNotFound)
	if a, err := runlog.ParseSubject(runlog.BlobSubject(p, run, digest, -1)); err != nil || a.Digest != digest {
		return nil, missing
	}
	read := func(chunk int) (*nats.Msg, error) {
		ctx, cancel := l.bounded(ctx)
		defer cancel()
		for since := time.Now(); ; {
			m, err := l.getBlob(ctx, runlog.BlobSubject(p, run, digest, chunk))
			if err == nil {
				return m, nil
			}
			if !errors.Is(err, errMissing) {
				return nil, unavailable("blob of "+run.String(), err)
			}
			if time.Since(since) > blobLag {
				return nil, missing
			}
			if !pause(ctx, 10*lagPause) {
				return nil, unavailable("blob of "+run.String(), context.Cause(ctx))
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
			return nil, fmt.Errorf("blob %.12s of %s: number of chunks: %w", digest, run, err)
		}
		for i := range chunks {
			m, err := read(i)
			if err != nil {
				return nil, err
			}
			data = append(data, m.Data...)
		}
	}
	if got := content.Digest(data); got != digest {
		return nil, fmt.Errorf("blob %.12s of %s is damaged: its bytes have digest %.12s", digest, run, got)
	}
	return data, nil
}
