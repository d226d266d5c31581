package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// World is one simulation: a bus, processes on it, and clients. Its methods are for the
// setup function of Run, except those that processes and clients may call according to
// their comments.
type World struct {
	cfg     Config
	random  *rand.Rand
	store   *store
	trace   trace
	ackWait time.Duration

	procs     []*Process // those that live or will restart
	buried    []*Process
	outside   *Process // represents the clients
	clients   []*client
	hosts     []*host
	flights   []*flight
	consumers []*consumer
	timers    []*timer
	alarms    []*alarm
	calls     []*modelCall

	invariants []Invariant
	executors  bool // the rules of executors hold too
	violation  *Violation

	steps    int
	healing  bool
	healedAt time.Time
	began    time.Time
	nextCall uint64
	numbered map[string]uint64 // segments, by profile and number
	// timerCount numbers fired timers. looked is when time was last checked. restAt is
	// since when all runs have been parked or ended.
	effects        map[string]string
	observers      []*Observer
	accepted       []acceptedInput
	timerCount     uint64
	looked, restAt time.Time
	choices        []choice // of the current step, kept for its memory

	// mu guards the fields that goroutines of processes and clients change.
	mu       sync.Mutex
	pending  []*op
	arrivals uint64
	ended    bool
	arrived  chan struct{}
	over     chan struct{} // closed when the world ends
}

// Result is the result of a simulation.
type Result struct {
	Seed uint64
	// Violation is the first invariant that did not hold; nil if all did.
	Violation *Violation
	// Steps is the number of interactions, Time the simulated time.
	Steps int
	Time  time.Duration
	// Hash of the whole trace: equal for equal schedules.
	Hash uint64
	// Records is the number of stored records.
	Records int

	trace trace
}

// Trace returns the last n steps as text; all for n ≤ 0.
func (r Result) Trace(n int) []string { return r.trace.words(n) }

// Run simulates the world that setup builds, in a bubble of package synctest. If an
// invariant does not hold, it fails t with a trace.
func Run(t *testing.T, cfg Config, setup func(w *World)) Result {
	t.Helper()
	r := Try(t, cfg, setup)
	if r.Violation != nil {
		t.Fatal(r.Failure(60, ""))
	}
	return r
}

// Failure returns the report of a simulation that failed: the last n steps and, if it
// is not empty, the command that repeats it.
func (r Result) Failure(n int, command string) string {
	text := fmt.Sprintf("seed %d, step %d: %s\n%s\n", r.Seed, r.Steps, r.Violation.Invariant, r.Violation.Message)
	for _, line := range r.Trace(n) {
		text += "  " + line + "\n"
	}
	if command != "" {
		text += "again: " + command + "\n"
	}
	return text
}

// Try is Run without failing t.
func Try(t *testing.T, cfg Config, setup func(w *World)) (result Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(cfg.withDefaults())
		defer func() {
			w.end()
			result = Result{
				Seed: cfg.Seed, Violation: w.violation, Steps: w.steps, Time: w.healedOr(time.Now()).Sub(w.began),
				Hash: w.trace.hash, Records: len(w.store.all), trace: w.trace,
			}
		}()
		setup(w)
		w.simulate()
	})
	return result
}

func newWorld(cfg Config) *World {
	takeover := cfg.Takeover
	if takeover == 0 {
		takeover = runlog.DefaultTakeover
	}
	w := &World{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0x5eed)), store: newStore(), ackWait: runlog.AckWaitOf(takeover),
		arrived: make(chan struct{}, 1), over: make(chan struct{}), began: time.Now(),
	}
	w.trace.began = w.began
	w.outside = &Process{Name: "outside", Instance: "outside", world: w, index: -1}
	w.consumers = append(w.consumers, &consumer{name: wakes}, &consumer{name: timersName}, &consumer{name: jobs})
	for _, name := range cfg.Executors {
		w.consumers = append(w.consumers, &consumer{name: name})
	}
	w.invariants, w.executors = append(w.stock(), cfg.Check...), true
	return w
}

// end ends all goroutines of the world.
func (w *World) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	close(w.over)
	for _, p := range append(w.buried, w.procs...) {
		p.cancel()
	}
	for _, c := range w.clients {
		c.cancel()
	}
	time.Sleep(24 * time.Hour) // time stops once the root goroutine of a bubble has ended
}

func (w *World) healedOr(t time.Time) time.Time {
	if w.violation == nil && !w.healedAt.IsZero() {
		return w.healedAt
	}
	return t
}

// Healing reports whether the faults are over: clients then start nothing new. Clients
// may call it.
func (w *World) Healing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healing
}

// Seed returns the seed of the simulation.
func (w *World) Seed() uint64 { return w.cfg.Seed }

// Random returns a separate generator for a name, so that its numbers do not depend on
// the schedule.
func (w *World) Random(name string) *rand.Rand {
	return rand.New(rand.NewPCG(w.cfg.Seed, hashOf(name)))
}

// signal notifies the scheduler that something may be pending; mu is held.
func (w *World) signal() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// chance is true in rate of 10,000 cases while there are faults.
func (w *World) chance(rate int) bool {
	return !w.healing && rate > 0 && w.random.IntN(10_000) < rate
}

// alarm is something that the world does at a time.
type alarm struct {
	at   time.Time
	what func()
}

// after makes the scheduler call what after d.
func (w *World) after(d time.Duration, what func()) {
	w.alarms = append(w.alarms, &alarm{at: time.Now().Add(d), what: what})
}

// client is a goroutine outside of any process: it does not die.
type client struct {
	name    string
	cancel  context.CancelFunc
	watches bool // it never ends by itself
	done    bool // guarded by World.mu
}

// Client runs f next to the processes. f ends when it has nothing more to do, or with
// its context.
func (w *World) Client(name string, f func(ctx context.Context)) { w.client(name, false, f) }

// watcher is a Client that does not end by itself: the simulation does not wait for it.
func (w *World) watcher(name string, f func(ctx context.Context)) { w.client(name, true, f) }

func (w *World) client(name string, watches bool, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), actor{}, name))
	c := &client{name: name, cancel: cancel, watches: watches}
	w.mu.Lock()
	w.clients = append(w.clients, c)
	w.mu.Unlock()
	go func() {
		defer func() {
			w.mu.Lock()
			c.done = true
			w.signal()
			w.mu.Unlock()
		}()
		f(ctx)
	}()
}

// StartRun stores the first record of a run, for custom executors without a gateway.
func (w *World) StartRun(run runlog.Run, step *harnessv1.Step) {
	rec := &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Version: 1, Schema: runlog.Schema, CommitTime: timestamppb.Now(),
		Writer: &harnessv1.Writer{Executor: "sim", Instance: "sim", Nonce: 1}, Body: &harnessv1.Record_Step{Step: step},
	}
	encoded, err := runlog.Encode(rec)
	var m *message
	if err == nil {
		m, err = w.store.append(rec, encoded)
	}
	if err != nil {
		panic("sim: " + run.String() + " cannot begin: " + err.Error())
	}
	w.stored(m)
}
