package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// AckFloor is the ack floor of the executor's consumer. It is counted in messages
// of the consumer's filter, so it speaks of steps to that executor only: it stands
// before the oldest one that was delivered and not acknowledged, and with none of
// those at the last one that was delivered. A step above it is still to come, or
// waits behind one that takes long.
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

// floors are the highest ack floors that this process has seen. A server that
// crashes may have forgotten acknowledgements, and starts again from a lower one;
// what was acknowledged has been acknowledged all the same.
type floors struct {
	mu sync.Mutex
	at map[floorOf]uint64
}

type floorOf struct {
	partition int
	executor  string
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
