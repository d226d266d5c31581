package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Counts are counters of one connection since it was opened.
type Counts struct {
	// Reconnects counts how often the connection was re-established.
	Reconnects uint64
	// Conflicts and ConflictsReplicated count writes that the fence of a single or a
	// replicated stream refused. Unanswered counts writes without an answer. Their
	// result is determined by reading.
	Conflicts, ConflictsReplicated, Unanswered uint64
	// Landed counts undecided writes that were stored, Resent those that were sent
	// again.
	Landed, Resent uint64
	// Stale counts answers of replicas that lag.
	Stale uint64
}

// Counts returns the counters.
func (l *Log) Counts() Counts {
	c := func(n int64) uint64 { return uint64(max(n, 0)) }
	return Counts{
		Reconnects: l.nc.Stats().Reconnects,
		Conflicts:  c(l.counts.fenced.Load()), ConflictsReplicated: c(l.counts.fencedReplicated.Load()), Unanswered: c(l.counts.unanswered.Load()),
		Landed: c(l.counts.landed.Load()), Resent: c(l.counts.resent.Load()),
		Stale: c(l.counts.stale.Load()),
	}
}

// Consumer is the state of a durable consumer, summed over the partitions.
type Consumer struct {
	// Name is the executor's name, or wake or timers, which repair consumes, or
	// inference.
	Name string
	// Pending messages were never delivered. AckPending messages were delivered and not
	// acknowledged, Redelivered of them more than once.
	Pending, AckPending, Redelivered uint64
	// Waiting counts the open requests of workers for messages.
	Waiting uint64
}

// Stream is the state of a stream, in bytes. Limit 0: none.
type Stream struct {
	Name        string
	Size, Limit uint64
}

// Status returns the state of all streams and consumers of the log, as their leaders
// report it. It makes six requests per partition, so use it for display and monitoring.
//
// Errors: runlog.ErrUnavailable.
func (l *Log) Status(ctx context.Context) (streams []Stream, consumers []Consumer, err error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	at := map[string]int{}
	for p := range l.partitions {
		for _, name := range []string{runsStream(p), blobsStream(p), timersStream(p)} {
			stream, err := l.js.Stream(ctx, name)
			if err != nil {
				return nil, nil, unavailable("look at stream "+name, err)
			}
			info := stream.CachedInfo()
			streams = append(streams, Stream{Name: name, Size: info.State.Bytes, Limit: uint64(max(info.Config.MaxBytes, 0))})
			list := stream.ListConsumers(ctx)
			for c := range list.Info() {
				name := strings.TrimPrefix(c.Name, execPrefix)
				if c.Config.Durable == "" {
					continue // the consumer of a reader
				}
				i, known := at[name]
				if !known {
					i = len(consumers)
					at[name], consumers = i, append(consumers, Consumer{Name: name})
				}
				add(&consumers[i], c)
			}
			if err := list.Err(); err != nil {
				return nil, nil, unavailable(fmt.Sprintf("look at the consumers of stream %s", name), err)
			}
		}
	}
	return streams, consumers, nil
}

func add(to *Consumer, c *jetstream.ConsumerInfo) {
	to.Pending += c.NumPending
	to.AckPending += uint64(max(c.NumAckPending, 0))
	to.Redelivered += uint64(max(c.NumRedelivered, 0))
	to.Waiting += uint64(max(c.NumWaiting, 0))
}

// Durables returns the durable consumers. To a user that may not list them it returns those of the
// executors in names, or of inference, only: then listed is false.
//
// Errors: runlog.ErrUnavailable.
func (l *Log) Durables(ctx context.Context, names []string) (consumers []Consumer, listed bool, err error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	listed, err = l.attempt(ctx, listConsumers+runsStream(0), func(ctx context.Context) (err error) {
		_, consumers, err = l.Status(ctx)
		return err
	})
	if listed {
		return consumers, true, err
	}
	for _, name := range names {
		all, durable := Consumer{Name: name}, execConsumer(name)
		if name == jobConsumer {
			durable = jobConsumer
		}
		for p := range l.partitions {
			info, err := l.js.Consumer(ctx, runsStream(p), durable)
			switch {
			case errors.Is(err, jetstream.ErrConsumerNotFound):
				continue
			case err != nil:
				return nil, false, unavailable("read consumer "+name, err)
			}
			add(&all, info.CachedInfo())
			if p == l.partitions-1 {
				consumers = append(consumers, all)
			}
		}
	}
	return consumers, false, nil
}

// listConsumers begins the subjects of requests for the consumers of a stream.
const listConsumers = "$JS.API.CONSUMER.LIST."
