package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// AckFloor returns the ack floor of the executor's consumer. The consumer receives only
// steps to that executor. The floor is below the oldest step that was delivered and not
// acknowledged, or without one at the last step that was delivered. A step above it is
// not delivered yet, or waits for one that takes long.
func (l *Log) AckFloor(ctx context.Context, run runlog.Run, executor string) (uint64, error) {
	missing := fmt.Errorf("executor %q has no consumer: %w", executor, runlog.ErrNotFound)
	if !runlog.Name.MatchString(executor) {
		return 0, missing
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	consumer, err := asked(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return l.js.Consumer(ctx, runsStream(p), execConsumer(executor))
	})
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return 0, missing
	case err != nil:
		return 0, unavailable("ack floor of "+executor, err)
	}
	return l.floors.raise(p, executor, consumer.CachedInfo().AckFloor.Stream), nil
}

// Redeliver resets the executor's consumer.
func (l *Log) Redeliver(ctx context.Context, run runlog.Run, executor string, from uint64) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	if _, err := l.js.ResetConsumerToSequence(ctx, runsStream(p), execConsumer(executor), from); err != nil {
		return unavailable("deliver steps to "+executor+" again", err)
	}
	l.floors.lower(p, executor)
	return nil
}

// Rewind resets the consumers of steps and jobs that are past what a loss has left, to their ack
// floors. NATS does so itself when it starts, but not for replicated streams, and not for a
// consumer that has no acknowledgement yet (2.15: ForceUpdate to a zero state, after which
// the state is read from the old file again).
func (l *Log) Rewind(ctx context.Context) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	for p, h := range l.histories {
		if err := l.rewind(ctx, p, h); err != nil {
			return unavailable("rewind the consumers of "+runsStream(p), err)
		}
	}
	return nil
}

func (l *Log) rewind(ctx context.Context, p int, h *history) error {
	epoch := h.epoch.Load()
	past, err := l.consumersPast(ctx, p, h, epoch)
	if err == nil && len(past) > 0 && l.replicas > 1 && pause(ctx, lagWait) {
		past, err = l.consumersPast(ctx, p, h, epoch) // the leader of the stream may apply later than a replica delivers
	}
	if err != nil {
		return err
	}
	for info, left := range past {
		from := min(info.AckFloor.Stream, left) + 1
		if _, err := l.js.ResetConsumerToSequence(ctx, runsStream(p), info.Name, from); err != nil {
			return err
		}
		l.logger.Error("the bus has lost messages that a consumer was past; it delivers again", "stream", runsStream(p), "consumer", info.Name, "delivered", info.Delivered.Stream, "from", from)
		if executor, ok := strings.CutPrefix(info.Name, execPrefix); ok {
			l.floors.lower(p, executor)
		}
	}
	h.rewound.Store(epoch)
	return nil
}

// consumersPast returns the consumers of steps and jobs that are past the end of a stream, and
// that end: the last message that the newest loss has left, if they were not reset since, and otherwise
// the newest message.
func (l *Log) consumersPast(ctx context.Context, p int, h *history, epoch uint64) (map[*jetstream.ConsumerInfo]uint64, error) {
	stream, err := asked(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.Stream(ctx, runsStream(p)) })
	if err != nil {
		return nil, err
	}
	list := stream.ListConsumers(ctx)
	var all []*jetstream.ConsumerInfo
	for info := range list.Info() {
		if strings.HasPrefix(info.Name, execPrefix) || info.Name == jobConsumer {
			all = append(all, info)
		}
	}
	if err := list.Err(); err != nil {
		return nil, err
	}
	// Read after the consumers: what they have delivered was stored before.
	info, err := asked(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return stream.Info(ctx) })
	if err != nil {
		return nil, err
	}
	l.compareLast(p, info)
	left := info.State.LastSeq
	if epoch != h.rewound.Load() {
		left = min(left, h.kept.Load())
	}
	past := map[*jetstream.ConsumerInfo]uint64{}
	for _, c := range all {
		if c.Delivered.Stream > left {
			past[c] = left
		}
	}
	return past, nil
}

// floors are the highest ack floors that this process has seen. A server that crashes
// may lose acknowledgements and then reports a lower floor. An acknowledged message
// remains so, unless the stream loses it.
type floors struct {
	mu sync.Mutex
	at map[floorOf]uint64
}

type floorOf struct {
	partition int
	executor  string
}

// lose forgets the floors of a partition, whose sequences are used again.
func (f *floors) lose(partition int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.at, func(at floorOf, _ uint64) bool { return at.partition == partition })
}

// lower forgets the floor of a consumer that delivers steps again.
func (f *floors) lower(partition int, executor string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.at, floorOf{partition, executor})
}

func (f *floors) raise(partition int, executor string, sequence uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = map[floorOf]uint64{}
	}
	key := floorOf{partition, executor}
	f.at[key] = max(f.at[key], sequence)
	return f.at[key]
}
