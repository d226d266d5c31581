package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// traffic is writers and a consumer at work on a cluster.
type traffic struct {
	t        *testing.T
	log      *Log
	appended atomic.Int64
	over     atomic.Bool
	writing  sync.WaitGroup

	mu        sync.Mutex
	records   map[runlog.Run]map[uint64]*harnessv1.Record
	newest    map[runlog.Run]uint64
	delivered map[uint64]int
	again     int
}

// write appends records to a run until the traffic ends. While the bus is unavailable
// it retries the same record.
func (w *traffic) write(id string) {
	w.writing.Go(func() {
		rec := first(id)
		for v := uint64(2); !w.over.Load(); v++ {
			sequence, err := w.log.Append(w.t.Context(), rec)
			for errors.Is(err, runlog.ErrUnavailable) && w.t.Context().Err() == nil {
				sequence, err = w.log.Append(w.t.Context(), rec)
			}
			if err != nil {
				w.t.Error(err)
				return
			}
			w.mu.Lock()
			run := runOf(rec)
			if w.records[run] == nil {
				w.records[run] = map[uint64]*harnessv1.Record{}
			}
			w.records[run][sequence], w.newest[run] = rec, sequence
			w.mu.Unlock()
			w.appended.Add(1)
			rec = after(rec, sequence, v)
		}
	})
}

// count counts a delivery and acknowledges it.
func (w *traffic) count(_ context.Context, d runlog.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.delivered[d.Entry().Sequence]++; w.delivered[d.Entry().Sequence] > 1 {
		w.again++
	}
	_ = d.Ack() // a lost acknowledgement repeats the delivery
}

// missing returns how many of the stored records were not delivered.
func (w *traffic) missing() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, records := range w.records {
		for sequence := range records {
			if w.delivered[sequence] == 0 {
				n++
			}
		}
	}
	return n
}

// TestSystemServersLost stops two of three servers one after the other, the first in order
// and the second abruptly, while writers and a consumer work. Each is back before the
// next one stops. Nothing is lost, and nothing is stored twice.
func TestSystemServersLost(t *testing.T) {
	t.Parallel()
	const account = "a"
	c := startCluster(t, account)
	if err := c.provision(account, Layout{}); err != nil {
		t.Fatal(err)
	}
	w := &traffic{
		t: t, log: c.open(t, account, c, 0),
		records: map[runlog.Run]map[uint64]*harnessv1.Record{}, newest: map[runlog.Run]uint64{}, delivered: map[uint64]int{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	consumed := make(chan error, 1)
	go func() { consumed <- w.log.Consume(ctx, "turn", 16, w.count) }()
	for i := range 4 {
		w.write(fmt.Sprint("r", i))
	}
	progress := func(what string) {
		t.Helper()
		until := w.appended.Load() + 400
		c.await(t, "progress "+what, func() bool { return w.appended.Load() >= until })
	}
	progress("at the start")
	for _, silent := range []bool{false, true} {
		lost := c.awaitLeader(t, account, "RUNS_0", nil)
		restore := func() {}
		if silent {
			restore = c.cut(lost)
			c.await(t, "a server without routes", func() bool { return lost.running().NumRoutes() == 0 })
		}
		lost.stop()
		progress("without " + lost.name())
		restore()
		lost.start(t)
		c.await(t, "a replica that has caught up", func() bool { return lost.running().JetStreamIsStreamCurrent(account, "RUNS_0") })
		progress("with " + lost.name())
	}
	w.over.Store(true)
	w.writing.Wait()
	c.await(t, "the delivery of every record", func() bool { return w.missing() == 0 || len(consumed) > 0 })
	cancel()
	if err := <-consumed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r := &replicas{T: t, cluster: c, account: account}
	for run, records := range w.records {
		for _, n := range c.nodes {
			r.whole(r.at(n), records, run, w.newest[run])
		}
	}
	t.Logf("%d records; %d deliveries again; appends: %d not answered, %d found stored, %d sent again",
		w.appended.Load(), w.again, w.log.counts.unanswered.Load(), w.log.counts.landed.Load(), w.log.counts.resent.Load())
	if w.log.counts.unanswered.Load() == 0 {
		t.Error("no append was disturbed")
	}
}
