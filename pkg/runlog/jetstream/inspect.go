package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var errNoJetStream = errors.New("JetStream is switched off on this NATS server or for this account: start the server with JetStream (nats-server -js); a server whose disk was full switches it off until there is room and it is restarted")

// codeNotYet is the error code of a cluster without a leader.
const (
	codeNotYet  jetstream.ErrorCode = 10008
	codeNoPeers jetstream.ErrorCode = 10005
)

func countPartitions(ctx context.Context, js jetstream.JetStream) (int, error) {
	for p := 0; ; p++ {
		_, err := js.Stream(ctx, runsStream(p))
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return p, nil
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
			errors.Is(err, nats.ErrNoResponders): // no server answers JetStream requests
			return 0, errNoJetStream
		case err != nil:
			return 0, fmt.Errorf("read stream %s: %w", runsStream(p), err)
		}
	}
}

var errNotProvisioned = errors.New("the bus is not provisioned: run `harness provision --nats URL` once")

// await inspects the bus until it is provisioned and has elected its leaders, until end
// at most: both may take time when a mesh starts.
func (l *Log) await(ctx context.Context, end time.Time) error {
	for {
		try, cancel := l.denied.until(ctx, inspection)
		err := l.inspect(try)
		cancel()
		if denied := l.denied.err(l.url); err != nil && denied != nil {
			return denied
		}
		if err == nil || !errors.Is(err, errNotProvisioned) && !starting(err) || time.Now().After(end) || !pause(ctx, dialPause) {
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				err = fmt.Errorf("JetStream at %s does not answer (%w): see whether most of its servers run, and whether their disks are full", l.url, err)
			}
			return err
		}
	}
}

// starting reports whether a failure may come from a bus that has only just started.
func starting(err error) bool {
	switch apiCode(err) {
	case codeNotYet, codeNoPeers:
		return true
	}
	for _, early := range []error{errNoJetStream, nats.ErrNoResponders, nats.ErrReconnectBufExceeded, nats.ErrTimeout, context.DeadlineExceeded} {
		if errors.Is(err, early) {
			return true
		}
	}
	return false
}

// inspect checks that the bus is provisioned and records its settings.
func (l *Log) inspect(ctx context.Context) error {
	n, err := countPartitions(ctx, l.js)
	if err != nil {
		return err
	}
	if n == 0 {
		return errNotProvisioned
	}
	for p := range n {
		for _, name := range []string{runsStream(p), blobsStream(p), timersStream(p)} {
			stream, err := l.js.Stream(ctx, name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return fmt.Errorf("stream %s is missing: %w", name, errNotProvisioned)
			}
			if err != nil {
				return fmt.Errorf("stream %s: %w", name, err)
			}
			if err := checkPartitions(stream.CachedInfo().Config, n); err != nil {
				return err
			}
			if err := checkStream(stream.CachedInfo().Config); err != nil {
				return err
			}
		}
	}
	wake, err := l.js.Consumer(ctx, runsStream(0), wakeConsumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) { // it is created after all others of its partition
		return fmt.Errorf("consumer %s on %s is missing: %w", wakeConsumer, runsStream(0), errNotProvisioned)
	}
	if err != nil {
		return fmt.Errorf("consumer %s on %s: %w", wakeConsumer, runsStream(0), err)
	}
	runs, err := l.js.Stream(ctx, runsStream(0))
	if err != nil {
		return fmt.Errorf("stream %s: %w", runsStream(0), err)
	}
	l.partitions, l.replicas = n, runs.CachedInfo().Config.Replicas
	histories := make([]*history, n)
	for p := range histories {
		histories[p] = newHistory(p, l.reconnects())
	}
	l.mu.Lock()
	l.histories = histories
	l.mu.Unlock()
	l.ackWait.Store(int64(wake.CachedInfo().Config.AckWait))
	return nil
}
