package parked

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// load is what a process takes.
type load struct {
	goroutines float64
	// heap is what its live objects take, and resident what it has of the
	// machine's memory, in bytes.
	heap, resident float64
}

// loads are those of the roles, and of NATS by another name than any role's.
type loads map[string]load

const natsName = "nats"

// window is how many questions are asked before their answers are awaited: more
// would only pile up, and be measured. Each is long, in bytes, so that it leaves so
// much garbage behind.
const window, long = 3, 16 << 10

// measure takes the loads of all processes. A process that has nothing to do
// collects its garbage every two minutes, and its heap is what the last collection
// has found alive, so it is given something to do: it is asked at length what it is,
// until it has collected some times. The least that a collection found is what is
// alive beside what was just going on.
func (b *bed) measure() loads {
	b.tb.Helper()
	goroutines, heaps := map[string][]float64{}, map[string][]float64{}
	inbox := b.nc.NewInbox()
	answers, err := b.nc.SubscribeSync(inbox)
	b.must(err)
	defer func() { _ = answers.Unsubscribe() }()
	collected := func() bool {
		for _, role := range meshtest.Roles {
			if len(heaps[role]) <= *collections { // the first is from before the questions
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(meshtest.Patience); !collected(); {
		if time.Now().After(end) {
			b.tb.Fatalf("not every process collects its garbage: %v", heaps)
		}
		for range window {
			b.must(b.nc.PublishRequest("hm.here", inbox, make([]byte, long)))
		}
		for range window * len(meshtest.Roles) {
			m, err := answers.NextMsg(meshtest.Patience)
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

// beside is the largest ratio of a figure over all roles to that of a mesh without
// runs, and whose it is.
func (l loads) beside(idle loads, figure func(load) float64) (ratio float64, role string) {
	for _, r := range meshtest.Roles {
		if q := figure(l[r]) / figure(idle[r]); q > ratio {
			ratio, role = q, r
		}
	}
	return ratio, role
}

// line is how three lives of a process compare.
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

// table has a line for each process: without runs, once more, with runs. A benchmark
// may print ten lines.
func table(idle, again, parked loads) string {
	var lines []string
	for _, name := range append(slices.Clone(meshtest.Roles), natsName) {
		lines = append(lines, line(name, idle[name], again[name], parked[name]))
	}
	return strings.Join(lines, "\n")
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
