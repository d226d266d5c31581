package mesh

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// inTheMidst takes runs of a scenario through the mesh, several in parallel, while
// trouble is made, and passes all of them to check. It calls trouble repeatedly until
// the runs have ended, each time after every further events: a bus that is never
// available would prove nothing.
func inTheMidst(t *testing.T, m *meshtest.Mesh, s scenario, lanes, each, every int, trouble func(), check func(*driver, []runlog.Entry)) {
	t.Helper()
	m.Log() // while the bus is available
	ctx := context.WithoutCancel(t.Context())
	var running, troubling sync.WaitGroup
	over := make(chan struct{})
	seen := make(chan struct{}, 100_000)
	s.drive = func(*driver, *harnessv1.Event) { seen <- struct{}{} }
	for lane := range lanes {
		running.Go(func() {
			for i := range each {
				d, entries := s.through(ctx, t, m, fmt.Sprintf("%s-%d-%d", s.name, lane, i))
				check(d, entries)
			}
		})
	}
	made := 0
	troubling.Go(func() {
		for {
			for range every {
				select {
				case <-over:
					return
				case <-seen:
				}
			}
			trouble()
			made++
		}
	})
	running.Wait()
	close(over)
	troubling.Wait()
	t.Logf("%d runs, %d times trouble", lanes*each, made)
	if made == 0 {
		t.Error("there was no trouble")
	}
}

// storedTools matches the tools of a request in a log.
var storedTools = regexp.MustCompile(` tools: \{ digest: "[0-9a-f]+" size: \d+ \}| tools_digest: "[^"]*"`)

// withoutTools returns a log without the stored tools of requests: a worker that cannot store them while
// there is no server leaves them out, and stores them with the next request.
func withoutTools(log string) string { return storedTools.ReplaceAllString(log, "") }

// TestSystemNATSIsKilled checks that runs continue while the only server is killed
// repeatedly.
func TestSystemNATSIsKilled(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, work)
	m := meshtest.Start(t, bin, meshtest.Config{})
	random := rand.New(rand.NewPCG(*seed, 1))
	inTheMidst(t, m, work, 3, *rounds, 10, func() {
		<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
		m.Bus.Kill(0)
		m.Bus.Restart(0)
		m.Bus.AwaitReady(0)
	}, func(d *driver, entries []runlog.Entry) {
		sound(t, d, entries)
		same(t, withoutTools(want[work.name]), withoutTools(d.canonical(entries)))
	})
}

// TestSystemClusterLosesItsLeader kills the one of three servers that leads the records. The
// others elect a new leader.
func TestSystemClusterLosesItsLeader(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, work)
	m := meshtest.Start(t, bin, meshtest.Config{NATS: meshtest.NATSConfig{Servers: 3}, Replicas: 3, Partitions: 2})
	led := map[int]int{}
	random := rand.New(rand.NewPCG(*seed, 2))
	inTheMidst(t, m, work, 4, max(1, *rounds/2), 25, func() {
		<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
		leader := -1
		waittest.Eventually(t, "a leader", func() bool {
			leader = m.Bus.Leader("RUNS_0")
			return leader >= 0
		})
		led[leader]++
		m.Bus.Kill(leader)
		waittest.Eventually(t, "another leader", func() bool {
			next := m.Bus.Leader("RUNS_0")
			return next >= 0 && next != leader
		})
		m.Bus.Restart(leader)
		m.Bus.AwaitReady(leader)
	}, func(d *driver, entries []runlog.Entry) {
		sound(t, d, entries)
		same(t, withoutTools(want[work.name]), withoutTools(d.canonical(entries)))
	})
	t.Logf("leaders killed: %v", led)
}
