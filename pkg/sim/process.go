package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Process is something that can die: what it runs reaches the world through its
// handles alone, and from its death on they answer nothing. It comes back as a new
// instance, with nothing of what the old one held.
type Process struct {
	// Name is that of the process; all its instances have it.
	Name string
	// Instance is unique over restarts.
	Instance string

	world  *World
	index  int
	life   int
	start  func(ctx context.Context, p *Process) error
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // the life of the process

	// The fields below are guarded by world.mu where goroutines change them.
	dead     bool
	stopping bool
	exited   bool
	err      error
	cut      time.Time
	requests []*request
	gateway  harnessv1.GatewayServiceServer

	listeners []*listener
	controls  []*control
	feeds     []*feed
	follows   []*follow
	deltas    []*deltas
	pokes     []*poked
	answerers []*answerer
	// subscribed counts the subscriptions, to tell them apart.
	subscribed uint64
}

// Start starts a process that runs f, and starts it again some time after it died
// or f returned. All that f does has to go through the handles of the instance that
// it is given, and to end with ctx.
func (w *World) Start(name string, f func(ctx context.Context, p *Process) error) {
	p := &Process{Name: name, start: f, world: w, index: len(w.procs)}
	w.procs = append(w.procs, p)
	w.launch(p)
}

// launch begins a life of a process.
func (w *World) launch(p *Process) {
	p.life++
	p.Instance = fmt.Sprintf("%s.%d", p.Name, p.life)
	ctx, cancel := context.WithCancel(context.Background())
	p.ctx, p.cancel = ctx, cancel
	go func() {
		err := p.start(ctx, p)
		w.mu.Lock()
		defer w.mu.Unlock()
		p.exited, p.err = true, err
		w.signal()
	}()
}

// Log is the process's way to the bus.
func (p *Process) Log() runlog.Log { return &handle{p: p} }

// Executor is a config of a loop that runs in the process.
func (p *Process) Executor() executor.Config {
	return executor.Config{Log: p.Log(), Instance: p.Instance}
}

// Serve makes a gateway known to the clients, for the life of the process.
func (p *Process) Serve(g harnessv1.GatewayServiceServer) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.gateway = g
}

// Dead says that the process has died. It may be called by clients.
func (p *Process) Dead() bool {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return p.dead
}

// World is the world that the process is in.
func (p *Process) World() *World { return p.world }

// alive says whether the process can be reached.
func (p *Process) alive() bool { return !p.dead && !p.exited }

func (p *Process) onBus(now time.Time) bool { return p.alive() && !now.Before(p.cut) }

// crash kills a process at once. What it had sent is under way.
func (w *World) crash(p *Process) {
	w.mu.Lock()
	p.dead = true
	var left, mine []*op
	for _, o := range w.pending {
		if o.p != p {
			left = append(left, o)
			continue
		}
		mine = append(mine, o)
	}
	w.pending = left
	requests := p.requests
	p.requests = nil
	w.mu.Unlock()
	for _, r := range requests {
		w.mu.Lock()
		r.fail(status.Error(codes.Unavailable, "the connection is closed"))
		w.mu.Unlock()
		synctest.Wait()
	}
	for _, f := range w.flights {
		if f.o.p == p {
			f.waits = false
		}
	}
	slices.SortFunc(mine, func(a, b *op) int { return a.key.compare(b.key) })
	for _, o := range mine {
		w.sentOrNot(o)
	}
	w.retire(p)
}

// retire makes way for the next life of a process that has died.
func (w *World) retire(p *Process) {
	next := &Process{Name: p.Name, start: p.start, world: w, index: p.index, life: p.life}
	dead := p
	pause := time.Duration(w.random.IntN(8000)) * time.Millisecond
	next.dead = true
	next.controls = p.controls // they were sent
	next.cancel = func() {}
	w.procs[p.index] = next
	w.buried = append(w.buried, dead)
	w.after(pause, func() { w.revive(next) })
}

// revive starts a process that has died.
func (w *World) revive(p *Process) {
	if !p.dead {
		return
	}
	w.mu.Lock()
	p.dead, p.exited, p.stopping = false, false, false
	w.mu.Unlock()
	w.launch(p)
	w.note(event{who: p.Name, kind: onFault, note: "starts as " + p.Instance})
}

// stop asks a process to end in an orderly way; it has a moment for that.
func (w *World) stop(p *Process) {
	p.stopping = true
	p.cancel()
	w.after(orderly, func() {
		if w.procs[p.index] == p && p.stopping && !p.dead {
			w.crash(p)
		}
	})
}

// orderly is how long a process has to end in an orderly way.
const orderly = 5 * time.Second

// request is a call that a client makes to a process.
type request struct {
	done chan struct{}
	err  error
	over bool
}

func (r *request) fail(err error) {
	if !r.over {
		r.over, r.err = true, err
		close(r.done)
	}
}

// Call has f called inside a process, as an RPC is: the caller gets UNAVAILABLE when the
// process is dead or dies meanwhile, and ctx ends with the caller's. It may be called
// by clients.
func Call[T any](ctx context.Context, w *World, name string, f func(ctx context.Context, p *Process) (T, error)) (T, error) {
	var result T
	r := &request{done: make(chan struct{})}
	o := &op{key: key{kind: onCall, run: name, text: actorOf(ctx)}, deadline: time.Now().Add(24 * time.Hour)}
	o.do = func(fate) error {
		p := w.process(name)
		if p == nil || !p.alive() || p.stopping {
			return away(name)
		}
		w.mu.Lock()
		p.requests = append(p.requests, r)
		w.mu.Unlock()
		go w.serve(ctx, p, r, func(ctx context.Context) (func(), error) {
			v, err := f(ctx, p)
			return func() { result = v }, err
		})
		return nil
	}
	if err := w.outside.interact(ctx, o); err != nil {
		return result, away(name)
	}
	<-r.done
	return result, r.err
}

// serve carries out a request in its process.
func (w *World) serve(ctx context.Context, p *Process, r *request, f func(context.Context) (keep func(), err error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	keep, err := f(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.over {
		keep()
		r.fail(err)
	}
	p.requests = without(p.requests, r)
}

func (w *World) process(name string) *Process {
	for _, p := range w.procs {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// actor is who an interaction is for, where its arguments do not tell.
type actor struct{}

func actorOf(ctx context.Context) string {
	name, _ := ctx.Value(actor{}).(string)
	return name
}

// Numbers draws numbers for the instance, for what production code leaves to chance.
func (p *Process) Numbers() func() uint64 {
	var mu sync.Mutex
	random := p.world.Random(p.Instance)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Uint64()
	}
}
