package jetstream

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/runlogtest"
)

// suiteAccounts are as many as the suite's cases may run at once, and more.
const suiteAccounts = 100

// accounts are the names of n accounts.
func accounts(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("a", i)
	}
	return names
}

// once are the cases that count deliveries. A consumer that changes its leader may
// deliver again what was delivered, so theirs do not.
var once = map[string]bool{"two_workers": true, "filters": true}

// The whole suite on three replicas, while the leaders of the streams and of the
// consumers step down again and again. Each case has an account of its own.
func TestSuiteReplicated(t *testing.T) {
	for name, layout := range map[string]Layout{"1 partition": {}, "2 partitions": {Partitions: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names := accounts(suiteAccounts)
			c := startCluster(t, names...)
			var used atomic.Int64
			var counts unrest
			t.Run("suite", func(t *testing.T) {
				runlogtest.Suite(t, func(t *testing.T) runlog.Log {
					account := names[used.Add(1)-1]
					c.provision(t, account, layout)
					l := c.open(t, account, c, 0)
					disturb(t, c, account, &counts, !once[path.Base(t.Name())])
					return l
				})
			})
			t.Logf("%d cases, %d streams and %d consumers lost their leader", used.Load(), counts.streams.Load(), counts.consumers.Load())
			if counts.streams.Load() < 50 || counts.consumers.Load() < 50 {
				t.Errorf("only %d streams and %d consumers lost their leader", counts.streams.Load(), counts.consumers.Load())
			}
		})
	}
}

// unrest counts leaders that stepped down.
type unrest struct{ streams, consumers atomic.Int64 }

// disturbEvery is the number of records after which leaders step down.
const disturbEvery = 10

// disturb makes the leader of a run's stream step down after every so many
// records, and half-way between the leaders of its consumers, until the test ends.
func disturb(t testing.TB, c *cluster, account string, counts *unrest, consumers bool) {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(c), nats.UserInfo(account, "secret"), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
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
			stream := "RUNS_" + strings.Split(m.Subject, ".")[2]
			switch {
			case n%disturbEvery == 0:
				counts.streams.Add(c.stepDown(account, stream))
			case n%disturbEvery == disturbEvery/2 && consumers:
				for _, consumer := range []string{"exec-turn", "exec-repair", wakeConsumer} {
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

// stepDown makes the leader of a stream step down; 0 when there was none.
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

// stepDownConsumer makes the leader of a consumer step down; 0 when there was none.
func (c *cluster) stepDownConsumer(account, stream, consumer string) int64 {
	for _, n := range c.nodes {
		s := n.running()
		if s != nil && s.JetStreamIsConsumerLeader(account, stream, consumer) && s.JetStreamStepdownConsumer(account, stream, consumer) == nil {
			return 1
		}
	}
	return 0
}
