package gatewayserver_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// ownServer starts a separate NATS server for a bed. consumers returns the names of
// the server's consumers.
func ownServer(t testing.TB) (log *jetstream.Log, consumers func() []string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	must(err)
	t.Cleanup(server.Stop)
	log, err = server.Open(t.Context(), jetstream.Config{}, jetstream.Layout{})
	must(err)
	t.Cleanup(log.Close)
	nc, err := natsgo.Connect(server.URL())
	must(err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	must(err)
	return log, func() []string {
		t.Helper()
		var names []string
		streams := js.StreamNames(t.Context())
		for stream := range streams.Name() {
			s, err := js.Stream(t.Context(), stream)
			must(err)
			list := s.ConsumerNames(t.Context())
			for name := range list.Name() {
				names = append(names, stream+"/"+name)
			}
			must(list.Err())
		}
		must(streams.Err())
		slices.Sort(names)
		return names
	}
}

// crowd is many watchers of many runs, on a few connections.
type crowd struct {
	b        *bed
	hands    []*hand
	attached sync.WaitGroup
	ended    sync.WaitGroup
	// got is called with each event that a watcher is sent.
	got func(watcher int, e *harnessv1.Event)
}

func (c *crowd) gather(runs, watchers int) {
	c.b.t.Helper()
	for i := range runs {
		c.hands = append(c.hands, c.b.started(fmt.Sprintf("r%d", i)))
	}
	clients := make([]harnessv1.GatewayServiceClient, 10)
	for i := range clients {
		clients[i] = c.b.dial()
	}
	for i := range watchers {
		c.attached.Add(1)
		c.ended.Go(func() {
			c.watch(clients[i%len(clients)], i, c.hands[i%runs].run.ID)
		})
	}
	c.attached.Wait()
}

func (c *crowd) watch(client harnessv1.GatewayServiceClient, i int, run string) {
	attached := sync.OnceFunc(c.attached.Done)
	defer attached()
	stream, err := client.WatchRun(c.b.ctx, &harnessv1.WatchRunRequest{Namespace: c.b.namespace, RunId: run})
	for err == nil {
		var resp *harnessv1.WatchRunResponse
		if resp, err = stream.Recv(); err == nil {
			attached()
			if e := resp.GetUpdate().GetEvent(); e != nil {
				c.got(i, e)
			}
		}
	}
	if err != io.EOF { //nolint:errorlint // gRPC returns io.EOF unwrapped
		c.b.t.Errorf("watcher %d: %v", i, err)
	}
}

// appendEvent appends a journal record with one event.
func (h *hand) appendEvent() *hand {
	return h.journal(&harnessv1.Journal{}, nil, &harnessv1.Event{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{}}})
}

// Watchers need no consumers on the server: with 500 of them it has the same consumers
// as before, and each watcher receives each version once, in order.
func TestManyWatchers(t *testing.T) {
	log, consumers := ownServer(t)
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	b.log = log
	before := consumers()
	if len(before) == 0 {
		t.Fatal("the server names no consumers")
	}
	const runs, watchers, notes = 50, 500, 20
	versions := make([]uint64, watchers) // each belongs to its watcher
	for i := range versions {
		versions[i] = 1 // has no events
	}
	c := &crowd{b: b, got: func(i int, e *harnessv1.Event) {
		if e.GetVersion() != versions[i]+1 {
			t.Errorf("watcher %d: version %d after %d", i, e.GetVersion(), versions[i])
		}
		versions[i] = e.GetVersion()
	}}
	c.gather(runs, watchers)
	lists := make([]runsWatch, 20) // streams that watch all runs
	for i := range lists {
		lists[i] = b.watchRuns(&harnessv1.WatchRunsRequest{ChangesOnly: true})
		lists[i].expect("caught up")
	}
	if got := consumers(); !slices.Equal(got, before) {
		t.Errorf("consumers %v, before %v", got, before)
	}
	var writing sync.WaitGroup
	for k := range 5 {
		writing.Go(func() {
			for range notes {
				for i := k; i < runs; i += 5 {
					c.hands[i].appendEvent()
				}
			}
			for i := k; i < runs; i += 5 {
				c.hands[i].end(harnessv1.RunStatus_RUN_STATUS_DONE)
			}
		})
	}
	writing.Wait()
	if got := consumers(); !slices.Equal(got, before) {
		t.Errorf("consumers %v, before %v", got, before)
	}
	c.ended.Wait()
	for i, v := range versions {
		if v != notes+2 {
			t.Errorf("watcher %d ended at version %d", i, v)
		}
	}
}

// BenchmarkWatchers measures the time from a commit to the client that watches,
// in ms: with 500 watchers of 50 runs at about 200 commits a second in all, and, for
// comparison, with one watcher of one run in five at the same rate. The time includes
// the append.
func BenchmarkWatchers(b *testing.B) {
	const commits, rate = 600, 200
	for b.Loop() {
		one := latencies(b, 5, 1, commits, rate)
		many := latencies(b, 50, 500, commits, rate)
		b.ReportMetric(ms(one, 0.50), "p50-ms-1")
		b.ReportMetric(ms(one, 0.99), "p99-ms-1")
		b.ReportMetric(ms(many, 0.50), "p50-ms-500")
		b.ReportMetric(ms(many, 0.99), "p99-ms-500")
	}
}

func ms(sorted []time.Duration, quantile float64) float64 {
	return float64(sorted[int(quantile*float64(len(sorted)-1))].Microseconds()) / 1000
}

// latencies commits to runs in turn, and returns how long each commit took to
// each watcher, sorted.
func latencies(t testing.TB, runs, watchers, commits, rate int) []time.Duration {
	t.Helper()
	log, _ := ownServer(t)
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	b.log = log
	var mu sync.Mutex
	begun := map[string]time.Time{} // by run and version
	var took []time.Duration
	c := &crowd{b: b}
	at := func(run int, version uint64) string { return fmt.Sprintf("%d/%d", run, version) }
	c.got = func(i int, e *harnessv1.Event) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if e.GetExecutorError() != nil {
			took = append(took, now.Sub(begun[at(i%runs, e.GetVersion())]))
		}
	}
	c.gather(runs, watchers)
	// Commits come at their times.
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	var writing sync.WaitGroup
	start := time.Now()
	writers := min(10, runs) // each run has one
	for k := range writers {
		writing.Go(func() {
			for n := k; n < commits; n += writers {
				select {
				case <-time.After(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(rate)))):
				case <-ctx.Done():
					return
				}
				h := c.hands[n%runs]
				mu.Lock()
				begun[at(n%runs, h.version+1)] = time.Now()
				mu.Unlock()
				h.appendEvent()
			}
		})
	}
	writing.Wait()
	for _, h := range c.hands {
		h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	}
	c.ended.Wait()
	if want := commits * watchers / runs; len(took) != want {
		t.Fatalf("%d deliveries, want %d", len(took), want)
	}
	slices.Sort(took)
	return took
}
