package explore

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

var large = flag.Bool("large", false, "explore larger spaces: some minutes and gigabytes")

// most bounds the states of a space, so that one that has grown is noticed.
const (
	most      = 1_000_000
	mostLarge = 12_000_000
)

// TestMain collects garbage less often than the default: the states of a search live until its end,
// and each collection visits them all. Larger spaces have no room for that.
func TestMain(m *testing.M) {
	flag.Parse()
	if !*large {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// TestEveryInterleavingKeepsTheRules explores each scenario wholly.
func TestEveryInterleavingKeepsTheRules(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(name(sc.Name), func(t *testing.T) {
			t.Parallel()
			switch {
			case *large:
				sc.Faults = sc.Large
			case testing.Short():
				sc.Faults = Faults{}
			}
			keeps(t, sc.Scenario)
		})
	}
}

// TestRepliesAreTrueAfterStaleReads, when nothing is stored: what is
// stored is judged by repair.
func TestRepliesAreTrueAfterStaleReads(t *testing.T) {
	t.Parallel()
	for _, sc := range []Scenario{
		{Name: "an interrupt behind a message", Before: interrupted, Senders: []Sender{{Item: userMessage("m1")}, {Item: interrupt("i1")}}},
		{Name: "a resume of a run that was interrupted", Before: interrupted, Senders: []Sender{{Item: resume("r1", nil)}}},
		{Name: "an approval of a call that waits", Turns: asks, Lag: 3, Senders: []Sender{{Item: approve("yes", "a")}}},
		{Name: "a cancel behind a message that reopens", Senders: []Sender{{Item: userMessage("m1")}, {Item: cancel("x1")}}},
	} {
		for _, fine := range []bool{false, true} {
			sc.Fine, sc.Faults = fine, Faults{Stale: 2}
			t.Run(name(fmt.Sprintf("%s, fine %v", sc.Name, fine)), func(t *testing.T) { keeps(t, sc) })
		}
	}
}

// TestCombinedActionsLeadToTheSameTerminals: where several interactions with the bus
// are one action, no terminal state is lost.
func TestCombinedActionsLeadToTheSameTerminals(t *testing.T) {
	t.Parallel()
	for _, sc := range []Scenario{
		{
			Name: "a message and an interrupt", Before: interrupted, Batch: 1,
			Senders: []Sender{{Item: userMessage("m1"), Again: 1}, {Item: interrupt("i1")}}, Faults: Faults{Crashes: 1},
		},
		{Name: "two answers", Turns: asks, Senders: []Sender{{Item: approve("yes", "a")}, {Item: deny("no", "a")}}, Faults: Faults{Crashes: 1}},
		{Name: "a message and a deadline", Turns: asks, Timers: true, Senders: []Sender{{Item: userMessage("m1")}}, Faults: Faults{Crashes: 1, Stale: 1}},
		{Name: "two workers each", Before: interrupted, Senders: []Sender{{Item: userMessage("m1")}}, Wakers: 2, Repairers: 2, Faults: Faults{Crashes: 1, Lost: 1, Stale: 1}},
	} {
		t.Run(name(sc.Name), func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				sc.Faults = Faults{}
			}
			together := terminals(t, sc)
			sc.Fine = true
			separate := terminals(t, sc)
			if !maps.Equal(together, separate) {
				t.Errorf("%d terminal states with combined actions, %d without", len(together), len(separate))
			}
		})
	}
}

// terminalRecorder is a model that remembers its terminal states, without the faults that
// are left.
type terminalRecorder struct {
	*Model
	seen map[string]bool
}

func (r *terminalRecorder) CheckTerminal(s *state) error {
	r.seen[r.portrait(s)] = true
	return r.Model.CheckTerminal(s)
}

// portrait returns a terminal state without its faults and without the numbers of this
// model.
func (r *terminalRecorder) portrait(s *state) string {
	var b strings.Builder
	for n := seq(1); n <= s.newest(); n++ {
		msg := s.at(n)
		fmt.Fprintln(&b, r.describe(s, n), msg.prev, msg.status)
		if msg.item != noItem {
			continue
		}
		if data, err := (proto.MarshalOptions{Deterministic: true}).Marshal(r.all[msg.body].step); err == nil {
			b.Write(data)
		}
	}
	for _, c := range s.senders {
		fmt.Fprintln(&b, r.items[c.item].GetId(), c.tries, c.answer, c.told)
	}
	return b.String()
}

func terminals(t *testing.T, sc Scenario) map[string]bool {
	t.Helper()
	m := &terminalRecorder{Model: newModel(t, sc), seen: map[string]bool{}}
	if r := walk(t, m); r.Broken != nil {
		t.Fatalf("%v\n%s", r.Broken, tail(r.Trace, 60))
	}
	return m.seen
}

// TestSweepRecoversLostSteps: the sweeper recovers the step of a worker that
// acknowledges too early. That it recovers no other step is a rule of every space.
func TestSweepRecoversLostSteps(t *testing.T) {
	t.Parallel()
	sc := Scenario{
		Name: "a message while repair acknowledges too early", Before: interrupted, Senders: []Sender{{Item: userMessage("m1")}},
		Mutation: AckPutBack, Faults: Faults{Crashes: 1, Lost: 2, Stale: 1},
	}
	if r := walk(t, newModel(t, sc)); r.Broken == nil || !strings.Contains(r.Broken.Error(), "stuck") {
		t.Fatalf("without a sweeper: %v", r.Broken)
	}
	sc.Sweeps = true
	keeps(t, sc)
}

// TestSweepSetsALostTimerAgain: where a timer that fires again is taken for the one that
// the park has refused, nothing is left to end the park, until a sweep finds it overdue.
func TestSweepSetsALostTimerAgain(t *testing.T) {
	t.Parallel()
	sc := early
	sc.Name, sc.Mutation = "a timer that fires before its park is stored", TimersFoundEarlier
	if r := walk(t, newModel(t, sc)); r.Broken == nil || !strings.Contains(r.Broken.Error(), "parked until a timer fires") {
		t.Fatalf("without a sweeper: %v", r.Broken)
	}
	sc.Sweeps = true
	keeps(t, sc)
}

// keeps explores a scenario and fails with the shortest way to a broken rule.
func keeps(t *testing.T, sc Scenario) {
	t.Helper()
	if r := walk(t, newModel(t, sc)); r.Broken != nil {
		t.Errorf("%v, after %d steps:\n%s", r.Broken, len(r.Trace), tail(r.Trace, len(r.Trace)))
	}
}

func newModel(t *testing.T, sc Scenario) *Model {
	t.Helper()
	m, err := New(sc)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func walk(t *testing.T, m Machine[*state, action]) Result {
	t.Helper()
	limit := most
	if *large {
		limit = mostLarge
	}
	begin := time.Now()
	r := Search(m, limit)
	t.Logf("explored %s states, %s transitions, depth %d, %s terminal, in %s",
		count(r.States), count(r.Transitions), r.Depth, count(r.Terminals), time.Since(begin).Round(time.Millisecond))
	return r
}

func name(text string) string { return strings.ReplaceAll(text, " ", "_") }

func count(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return count(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// tail is the end of a trace, numbered.
func tail(trace []string, lines int) string {
	first := max(0, len(trace)-lines)
	var b strings.Builder
	for i, line := range slices.All(trace[first:]) {
		fmt.Fprintf(&b, "%4d  %s\n", first+i+1, line)
	}
	return b.String()
}
