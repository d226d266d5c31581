package jetstream

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Counts are what this process has counted on its connection since it was made.
type Counts struct {
	// Reconnects are the times that the connection had to be made again.
	Reconnects uint64
	// Conflicts and ConflictsReplicated are writes that the fence of a single or of
	// a replicated stream refused, Unanswered those whose answer did not come. What
	// came of them is found out by reading.
	Conflicts, ConflictsReplicated, Unanswered uint64
	// Landed are undecided writes that were stored, Resent those sent again.
	Landed, Resent uint64
	// Stale are answers of replicas that were behind.
	Stale uint64
}

// Counts returns what was counted so far.
func (l *Log) Counts() Counts {
	c := func(n int64) uint64 { return uint64(max(n, 0)) }
	return Counts{
		Reconnects: l.nc.Stats().Reconnects,
		Conflicts:  c(l.counts.fenced.Load()), ConflictsReplicated: c(l.counts.fencedReplicated.Load()), Unanswered: c(l.counts.unanswered.Load()),
		Landed: c(l.counts.landed.Load()), Resent: c(l.counts.resent.Load()),
		Stale: c(l.counts.stale.Load()),
	}
}

// Consumer is how a durable consumer stands, summed over the partitions.
type Consumer struct {
	// Name is the executor's, or wake or timers, which repair serves.
	Name string
	// Pending messages were never delivered, AckPending ones were and are not done,
	// of which Redelivered more than once.
	Pending, AckPending, Redelivered uint64
	// Waiting are the open requests of workers for messages.
	Waiting uint64
}

// Stream is how a stream stands, in bytes. Limit 0: none.
type Stream struct {
	Name        string
	Size, Limit uint64
}

// Standing returns how all streams and consumers of the log stand, as their leaders
// say: six requests for each partition, so it is for people and monitoring.
//
// Errors: runlog.ErrUnavailable.
func (l *Log) Standing(ctx context.Context) (streams []Stream, consumers []Consumer, err error) {
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
					continue // somebody's who only looks
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
