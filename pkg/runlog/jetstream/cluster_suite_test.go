package jetstream

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/runlogtest"
)

// once are the cases that count deliveries. A consumer with a new leader may repeat
// deliveries, so these cases keep their leaders.
var once = map[string]bool{
	"consume/two_workers": true, "consume/filters": true, "consume/expired": true, "wake/park,_end_and_inbox": true, "job/two_workers": true,
}

// TestSystemSuiteReplicated runs the suite on three replicas while the leaders of the streams
// and of the consumers step down repeatedly. Each case has a separate account.
// It has three servers and some hundred changes of leader, and takes minutes.
func TestSystemSuiteReplicated(t *testing.T) {
	t.Parallel()
	ready, c := supply(t)
	var cases, calm atomic.Int64
	var counts unrest
	t.Run("suite", func(t *testing.T) {
		runlogtest.Suite(t, func(t *testing.T, test func(*testing.T, runlog.Log)) {
			account, ok := <-ready
			if !ok {
				t.Fatal("there are no accounts left")
			}
			t.Cleanup(func() { c.remove(t, account) })
			l := c.open(t, account, c, disturbedTimeout)
			consumers := !once[path.Join(path.Base(path.Dir(t.Name())), path.Base(t.Name()))]
			if cases.Add(1); !consumers {
				calm.Add(1)
			}
			disturb(t, c, account, &counts, consumers)
			test(t, &ownWrites{Log: l, newest: map[runlog.Run]uint64{}, inbox: map[runlog.Run]uint64{}, told: map[inboxKey]uint64{}})
		})
	})
	t.Logf("%d cases, %d streams and %d consumers lost their leader", cases.Load(), counts.streams.Load(), counts.consumers.Load())
	if cases.Load() < 50 {
		return // only some cases were selected
	}
	if counts.streams.Load() < 20 || counts.consumers.Load() < 100 || int(calm.Load()) != len(once) {
		t.Errorf("only %d streams and %d consumers lost their leader; %d cases were spared", counts.streams.Load(), counts.consumers.Load(), calm.Load())
	}
}

// ownWrites is a log whose reads contain the records written through it. The suite reads
// its own writes without naming them, which only a single server guarantees.
type ownWrites struct {
	runlog.Log

	mu            sync.Mutex
	newest, inbox map[runlog.Run]uint64
	told          map[inboxKey]uint64
}

// inboxKey names an item of an inbox.
type inboxKey struct {
	run runlog.Run
	id  string
}

func (o *ownWrites) wrote(in map[runlog.Run]uint64, run runlog.Run, sequence uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in[run] = max(in[run], sequence)
}

func (o *ownWrites) written(in map[runlog.Run]uint64, run runlog.Run) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return in[run]
}

// Append calls the log's Append.
func (o *ownWrites) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	sequence, err := o.Log.Append(ctx, rec)
	o.wrote(o.newest, runOf(rec), sequence)
	return sequence, err
}

// AppendInbox calls the log's AppendInbox. An item exists if its sequence has been
// returned before: without an answer of the old leader, a call finds its own item.
func (o *ownWrites) AppendInbox(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, after uint64) (uint64, bool, error) {
	sequence, existed, err := o.Log.AppendInbox(ctx, run, item, after)
	o.wrote(o.inbox, run, sequence)
	if err != nil {
		return sequence, existed, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	existed = o.told[inboxKey{run, item.GetId()}] == sequence
	o.told[inboxKey{run, item.GetId()}] = sequence
	return sequence, existed, nil
}

// Erase calls the log's Erase. Afterwards, some or all writes are gone.
func (o *ownWrites) Erase(ctx context.Context, run runlog.Run, keep, through uint64) error {
	o.mu.Lock()
	delete(o.newest, run)
	delete(o.inbox, run)
	o.mu.Unlock()
	return o.Log.Erase(ctx, run, keep, through)
}

// View calls the log's View with the newest own write.
func (o *ownWrites) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	return o.Log.View(ctx, run, max(contains, o.written(o.newest, run), o.written(o.inbox, run)))
}

// Newer calls the log's Newer until a replica has the newest own write.
func (o *ownWrites) Newer(ctx context.Context, run runlog.Run, sequence uint64) (bool, error) {
	for {
		newer, err := o.Log.Newer(ctx, run, sequence)
		if err != nil || newer || sequence >= max(o.written(o.newest, run), o.written(o.inbox, run)) || !pause(ctx, lagPause) {
			return newer, err
		}
	}
}

// LastInbox calls the log's LastInbox until a replica has the newest own write.
func (o *ownWrites) LastInbox(ctx context.Context, run runlog.Run) (uint64, error) {
	for {
		last, err := o.Log.LastInbox(ctx, run)
		if err != nil || last >= o.written(o.inbox, run) || !pause(ctx, lagPause) {
			return last, err
		}
	}
}

// supply starts a cluster and provisions accounts, a few ahead of use, until the test
// ends. Every third one has two partitions.
func supply(t *testing.T) (<-chan string, *cluster) {
	t.Helper()
	const most, ahead = 200, 4
	names := make([]string, most)
	rest := make(chan string, most)
	layouts := map[string]Layout{}
	for i := range names {
		names[i] = fmt.Sprint("a", i)
		layouts[names[i]] = Layout{Partitions: 1 + (i%3)/2}
		rest <- names[i]
	}
	close(rest)
	c := startCluster(t, names...)
	ready, stop := make(chan string), make(chan struct{})
	var working sync.WaitGroup
	for range ahead {
		working.Go(func() {
			for account := range rest {
				if err := c.provision(account, layouts[account]); err != nil {
					t.Errorf("account %s: %v", account, err)
					continue
				}
				select {
				case ready <- account:
				case <-stop:
					return
				}
			}
		})
	}
	t.Cleanup(func() {
		close(stop)
		working.Wait()
	})
	return ready, c
}

// unrest counts leaders that stepped down.
type unrest struct{ streams, consumers atomic.Int64 }

// disturbEvery is the number of records after which leaders step down again. An append
// in flight then gets no answer and waits for a third of the log's timeout.
const disturbEvery = 50

// disturbedTimeout bounds a request, which may meet several elections on a busy machine.
const disturbedTimeout = 15 * time.Second

// disturb makes the leaders of a run's streams step down every disturbEvery records, and
// the leaders of its consumers more often, until the test ends.
func disturb(t testing.TB, c *cluster, account string, counts *unrest, consumers bool) {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(c), nats.UserInfo(account, "secret"), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	// Every record is received, so that the disturbance depends on the records only.
	records := make(chan *nats.Msg, 10_000)
	sub, err := nc.ChanSubscribe("hm.live.>", records)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	var disturbing sync.WaitGroup
	stop := make(chan struct{})
	disturbing.Go(func() {
		for n := 1; ; n++ {
			var m *nats.Msg
			select {
			case m = <-records:
			case <-stop:
				return
			}
			p, _ := strconv.Atoi(strings.Split(m.Subject, ".")[2])
			stream := runsStream(p)
			switch {
			case n%disturbEvery == 7:
				counts.streams.Add(c.stepDown(account, stream))
			case n%disturbEvery == 12:
				counts.streams.Add(c.stepDown(account, blobsStream(p)))
			case n%(disturbEvery/4) == 4 && consumers:
				for _, consumer := range []string{"exec-turn", "exec-repair", wakeConsumer, jobConsumer} {
					counts.consumers.Add(c.stepDownConsumer(account, stream, consumer))
				}
			}
		}
	})
	t.Cleanup(func() {
		_ = sub.Unsubscribe()
		close(stop)
		disturbing.Wait()
		nc.Close()
	})
}

// stepDown makes the leader of a stream step down; it returns 0 if there was none.
func (c *cluster) stepDown(account, stream string) int64 {
	n := c.leader(account, stream)
	if n == nil {
		return 0
	}
	if s := n.running(); s == nil || s.JetStreamStepdownStream(account, stream) != nil {
		return 0
	}
	return 1
}

// stepDownConsumer makes the leader of a consumer step down; it returns 0 if there was
// none.
func (c *cluster) stepDownConsumer(account, stream, consumer string) int64 {
	for _, n := range c.nodes {
		s := n.running()
		if s != nil && s.JetStreamIsConsumerLeader(account, stream, consumer) && s.JetStreamStepdownConsumer(account, stream, consumer) == nil {
			return 1
		}
	}
	return 0
}
