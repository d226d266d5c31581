package parked

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// load is what a process uses.
type load struct {
	goroutines float64
	// heap is the size of its live objects, resident its share of the machine's memory,
	// in bytes.
	heap, resident float64
}

// loads are those of the roles, and of NATS under a name that no role has.
type loads map[string]load

const natsName = "nats"

// window is how many requests are sent before their answers are awaited: more would
// only queue, and be measured. Each has long bytes, so that it leaves that much
// garbage.
const window, long = 3, 16 << 10

// measure returns the loads of all processes. An idle process collects its garbage
// every two minutes, and its heap is what the last collection has found alive. So it
// gets long requests for its presence until it has collected some times. The minimum
// over the collections is what is alive apart from current work.
func (b *bed) measure() loads {
	b.tb.Helper()
	goroutines, heaps := map[string][]float64{}, map[string][]float64{}
	inbox := b.nc.NewInbox()
	answers, err := b.nc.SubscribeSync(inbox)
	b.must(err)
	defer func() { _ = answers.Unsubscribe() }()
	collected := func() bool {
		for _, role := range meshtest.Roles {
			if len(heaps[role]) <= *collections { // the first is from before the requests
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(waittest.Patience); !collected(); {
		if time.Now().After(end) {
			b.tb.Fatalf("not every process collects its garbage: %v", heaps)
		}
		for range window {
			b.must(b.nc.PublishRequest("hm.here", inbox, make([]byte, long)))
		}
		for range window * len(meshtest.Roles) {
			m, err := answers.NextMsg(waittest.Patience)
			b.must(err)
			p := &harnessv1.Presence{}
			b.must(proto.Unmarshal(m.Data, p))
			role, heap := p.GetRole(), float64(p.GetHeapBytes())
			goroutines[role] = append(goroutines[role], float64(p.GetGoroutines()))
			if h := heaps[role]; len(h) == 0 || h[len(h)-1] != heap {
				heaps[role] = append(h, heap)
			}
		}
	}
	all := loads{}
	for _, role := range meshtest.Roles {
		slices.Sort(goroutines[role])
		all[role] = load{
			goroutines: goroutines[role][len(goroutines[role])/2],
			heap:       slices.Min(heaps[role][1:]),
			resident:   float64(resident(b.tb, b.m.Process(role).PID())),
		}
	}
	pid, _ := natsServer(b.tb)
	all[natsName] = load{resident: float64(resident(b.tb, pid)), heap: b.natsHeap()}
	return all
}

// largestRatio returns the largest ratio of a figure over all roles to that of a mesh
// without runs, and its role.
func (l loads) largestRatio(idle loads, figure func(load) float64) (ratio float64, role string) {
	for _, r := range meshtest.Roles {
		if q := figure(l[r]) / figure(idle[r]); q > ratio {
			ratio, role = q, r
		}
	}
	return ratio, role
}

// line compares three lives of a process.
func line(name string, lives ...load) string {
	var goroutines, heaps, all []string
	for _, l := range lives {
		goroutines = append(goroutines, fmt.Sprintf("%.0f", l.goroutines))
		heaps = append(heaps, fmt.Sprintf("%.2f", l.heap/(1<<20)))
		all = append(all, fmt.Sprintf("%.1f", l.resident/(1<<20)))
	}
	between := func(figures []string) string { return strings.Join(figures, " | ") }
	if name == natsName {
		return fmt.Sprintf("%-12s  %s MiB alive, %s MiB in all", name, between(heaps), between(all))
	}
	return fmt.Sprintf("%-12s  %s goroutines, %s MiB alive, %s MiB in all", name, between(goroutines), between(heaps), between(all))
}

// table has a line for each process: without runs, again without runs, with runs. A
// benchmark may print ten lines.
func table(idle, again, parked loads) string {
	var lines []string
	for _, name := range append(slices.Clone(meshtest.Roles), natsName) {
		lines = append(lines, line(name, idle[name], again[name], parked[name]))
	}
	return strings.Join(lines, "\n")
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
