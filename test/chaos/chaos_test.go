package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

var (
	length = flag.Duration("length", time.Minute, "time with faults")
	seed   = flag.Uint64("seed", 1, "of the faults")
	lanes  = flag.Int("lanes", 4, "runs at the same time")
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	disktest.Enter()
	os.Exit(m.Run())
}

// TestSystemChaos does the faults of a plan, and then checks what the package promises.
func TestSystemChaos(t *testing.T) {
	bin, err := meshtest.Build()
	if err != nil {
		t.Fatal(err)
	}
	disk := disktest.New(t)
	m := meshtest.Start(t, bin, meshtest.Config{Workers: 2, NATS: meshtest.NATSConfig{Dir: func() string { return disk.Dir }, SyncAlways: true}})
	names := append(slices.Clone(meshtest.Roles), "turn-2")
	for _, name := range names {
		defer m.Respawn(name, nil)()
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &clients{t: t, ctx: ctx, m: m, script: m.Write("script.yaml", script()), over: make(chan struct{})}
	t.Cleanup(func() { // also if a fault could not be done
		cancel()
		c.lanes.Wait()
	})
	c.start(*lanes)

	i := &injector{t: t, m: m, disk: disk, names: names, count: map[Kind]int{}}
	next := Plan(*seed, names, runlog.DefaultTakeover)
	faults := 0
	for end := time.Now().Add(*length); time.Now().Before(end) || faults < len(weights); faults++ {
		f := next()
		t.Logf("%s %+v", time.Now().UTC().Format(time.TimeOnly), f)
		i.inject(f)
	}
	last := time.Now()
	close(c.over)
	for _, name := range names {
		m.AwaitAlive(name)
	}
	<-time.After(time.Until(last.Add(3 * runlog.DefaultTakeover)))
	c.moved(last)
	c.lanes.Wait()
	t.Logf("seed %d: %d faults in %s, %v; the bus lost %d records", *seed, faults, *length, i.count, i.removed)
	c.check(i.removed)
}

// moved fails for each run without a record since the last fault.
func (c *clients) moved(last time.Time) {
	c.t.Helper()
	c.mu.Lock()
	all := slices.Clone(c.all)
	c.mu.Unlock()
	for _, w := range all {
		view, err := c.m.Log().View(c.t.Context(), w.run, 0)
		if errors.Is(err, runlog.ErrNotFound) {
			continue // see check
		}
		if err != nil {
			c.t.Errorf("%s: %v", w.run, err)
			continue
		}
		if newest := view.Newest.Record.GetCommitTime().AsTime(); !view.Quiescent() && newest.Before(last) {
			c.t.Errorf("%s has not moved since %s, %s before the end of the last fault, at version %d", w.run, newest, last.Sub(newest), view.Newest.Header.Version)
		}
	}
}

// check compares what clients have seen with what is stored and with what has happened. removed is how many records
// the bus has lost: with any, it may have lost runs.
func (c *clients) check(removed int) {
	c.t.Helper()
	cut := removed > 0
	lost, unknown, resumed, effects := 0, 0, 0, 0
	for _, w := range c.all {
		if w.err != nil {
			c.t.Errorf("%s: %v", w.run, w.err)
		}
		lines := w.lines(c.t)
		for id, n := range lines {
			if effects += n; n > 1 {
				c.t.Errorf("%s: the effect of %s happened %d times", w.run, id, n)
			}
		}
		if _, err := c.m.Log().View(c.t.Context(), w.run, 0); errors.Is(err, runlog.ErrNotFound) && cut {
			lost++
			continue
		}
		entries := c.m.Ended(w.run, 0)
		if err := meshtest.Check(entries); err != nil {
			c.t.Errorf("%s: %v", w.run, err)
		}
		resumed += w.resumed
		if w.lost && cut {
			continue
		}
		if w.lost {
			c.t.Errorf("%s: its watcher received the loss of records", w.run)
		}
		unsure := 0
		for _, outcome := range meshtest.Outcomes(entries) {
			if outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
				unsure++
			}
		}
		unknown += unsure
		if missing := calls - len(lines); missing > unsure+w.resumed {
			c.t.Errorf("%s: %d effects are missing, %d calls are unknown, %d steps were put aside", w.run, missing, unsure, w.resumed)
		}
		// An event is named by the version of its record, and the record that replaces a lost one has that version
		// again: a watcher that renews its stream in between misses what it believes to have received.
		if got, want := w.events, stored(entries); missed(got, want) > removed {
			c.t.Errorf("%s: the watcher received %d events, stored are %d; they differ from %d on", w.run, len(got), len(want), firstDifference(got, want))
		}
	}
	c.t.Logf("%d runs: %d effects, each once; %d calls unknown, %d steps put aside and resumed, %d runs lost with the tail of the bus", len(c.all), effects, unknown, resumed, lost)
	if effects == 0 {
		c.t.Error("no run has had an effect")
	}
}

// stored returns the ids of the events of a log.
func stored(entries []runlog.Entry) []string {
	var all []string
	for _, e := range entries {
		for i := range e.Record.GetEvents() {
			all = append(all, fmt.Sprintf("%d-%d", e.Header.Version, i))
		}
	}
	return all
}

// missed returns the number of records of which a watcher that received got has not received all events of want; more
// than any number of lost records if it received others, or another order.
func missed(got, want []string) int {
	versions := map[string]bool{}
	for _, id := range want {
		if len(got) > 0 && got[0] == id {
			got = got[1:]
			continue
		}
		version, _, _ := strings.Cut(id, "-")
		versions[version] = true
	}
	if len(got) > 0 {
		return math.MaxInt
	}
	return len(versions)
}

func firstDifference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
