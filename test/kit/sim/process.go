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

// Process can die. Its code reaches the world only through its handles, which return no
// answers after its death. It restarts as a new instance without the state of the old
// one.
type Process struct {
	// Name is the process's name. All its instances have it.
	Name string
	// Instance is unique, also after restarts.
	Instance string

	world  *World
	index  int
	life   int
	start  func(ctx context.Context, p *Process) error
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // ends with the process

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
	foreign   map[runlog.Run]foreignRecord // see viewed
	feeds     []*feed
	follows   []*follow
	deltas    []*deltas
	pokes     []*pokeFeed
	jobEnds   []*jobEnd
	answerers []*answerer
	// subscribed counts the subscriptions, to number them.
	subscribed uint64
}

// Start starts a process that runs f, and restarts it some time after it died or f
// returned. f must use only the handles of the instance that it receives, and end with
// ctx.
func (w *World) Start(name string, f func(ctx context.Context, p *Process) error) {
	p := &Process{Name: name, start: f, world: w, index: len(w.procs)}
	w.procs = append(w.procs, p)
	w.launch(p)
}

// launch starts the next instance of a process.
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

// Log returns the process's run log.
func (p *Process) Log() runlog.Log { return &handle{p: p} }

// Context returns the context of the instance.
func (p *Process) Context() context.Context { return p.ctx }

// Executor returns the config of a loop that runs in the process.
func (p *Process) Executor() executor.Config {
	return executor.Config{Log: p.Log(), Instance: p.Instance}
}

// Serve makes a gateway available to the clients until the process dies.
func (p *Process) Serve(g harnessv1.GatewayServiceServer) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.gateway = g
}

// Dead reports whether the process has died. Clients may call it.
func (p *Process) Dead() bool {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return p.dead
}

// World returns the world of the process.
func (p *Process) World() *World { return p.world }

// alive reports whether the process can be reached.
func (p *Process) alive() bool { return !p.dead && !p.exited }

func (p *Process) onBus(now time.Time) bool { return p.alive() && !now.Before(p.cut) }

// crash kills a process immediately. What it has sent stays in flight.
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

// retire prepares the next instance of a process that has died.
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
	w.record(event{who: p.Name, kind: onFault, note: "starts as " + p.Instance})
}

// stop requests an orderly end of a process and kills it if it takes too long.
func (w *World) stop(p *Process) {
	p.stopping = true
	p.cancel()
	w.after(orderly, func() {
		if w.procs[p.index] == p && p.stopping && !p.dead {
			w.crash(p)
		}
	})
}

// orderly bounds an orderly end.
const orderly = 5 * time.Second

// request is a call of a client to a process.
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

// Call calls f inside a process, as an RPC does: it returns UNAVAILABLE if the process
// is dead or dies meanwhile, and ctx ends with the caller's. Clients may call it.
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

// serve handles a request in its process.
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

// actor is the context key of the caller's name, for interactions whose arguments do
// not identify it.
type actor struct{}

func actorOf(ctx context.Context) string {
	name, _ := ctx.Value(actor{}).(string)
	return name
}

// Numbers returns a generator for the instance, for what production code draws at
// random.
func (p *Process) Numbers() func() uint64 {
	var mu sync.Mutex
	random := p.world.Random(p.Instance)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Uint64()
	}
}
