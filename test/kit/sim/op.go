package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// kind is the kind of an interaction of a process with the world.
type kind uint8

// The kinds. Their order decides only the order in which equal choices are listed.
const (
	onAppend kind = iota + 1
	onInbox
	onBlob
	onTimer
	onErase
	onView
	onRead
	onLastInbox
	onItems
	onGetBlob
	onExecutors
	onFloor
	onSubscribe
	onRuns
	onDescribe
	onExecute
	onCancel
	onModel
	onAnswer
	onDeliver
	onControl
	onFeed
	onFollow
	onDelta
	onPoke
	onLand
	onToolEnd
	onToolAnswer
	onFault
	onCall
	onHook
	onJob
	onBlobAs
	onGetBlobAs
	onStarted
	onRemove
	onJobEnd
	onResume
	onValue
	onPutValue
)

var kindNames = [...]string{
	onAppend: "append", onInbox: "give input", onBlob: "store blob", onTimer: "set timer", onErase: "erase",
	onView: "view", onRead: "read", onLastInbox: "look at inbox", onItems: "read inbox", onGetBlob: "read blob",
	onExecutors: "list executors", onFloor: "ack floor", onSubscribe: "subscribe", onRuns: "follow runs",
	onDescribe: "describe host", onExecute: "execute tool", onCancel: "cancel tools", onModel: "ask model", onAnswer: "model answers",
	onDeliver: "deliver", onControl: "acknowledge", onFeed: "feed", onFollow: "follow", onDelta: "delta", onPoke: "poke",
	onLand: "land", onToolEnd: "tool ends", onToolAnswer: "tool answers", onFault: "fault", onCall: "call", onHook: "call hook",
	onJob: "create job", onBlobAs: "store keyed blob", onGetBlobAs: "read keyed blob", onStarted: "look at first record",
	onRemove: "remove by key", onJobEnd: "job ends",
	onResume: "continue",
	onValue:  "read value", onPutValue: "store value",
}

func (k kind) String() string { return kindNames[k] }

// key identifies a pending interaction, independently of the order of goroutines.
type key struct {
	proc int
	kind kind
	run  string
	text string
	a, b uint64
	who  string // the caller's name, if all else is equal
	// from holds the callers of the interaction, if also the name is equal: one call can
	// have two goroutines that do the same, such as the watch of a run and its follower.
	from callers
	n    uint64 // distinguishes interactions that are equal otherwise; depends on the order of goroutines
}

func (k key) compare(o key) int {
	if c := cmp.Or(cmp.Compare(k.proc, o.proc), cmp.Compare(k.kind, o.kind)); c != 0 {
		return c
	}
	if c := cmp.Or(cmp.Compare(k.run, o.run), cmp.Compare(k.a, o.a), cmp.Compare(k.b, o.b), cmp.Compare(k.text, o.text), cmp.Compare(k.who, o.who)); c != 0 {
		return c
	}
	return cmp.Or(k.from.compare(o.from), cmp.Compare(k.n, o.n))
}

// callers are the program counters of a stack, innermost first.
type callers [16]uintptr

func callersOf() (c callers) {
	runtime.Callers(3, c[:])
	return c
}

// compare compares the functions by name, so that the order is the same in each build.
func (c callers) compare(o callers) int {
	if c == o {
		return 0
	}
	return slices.Compare(c.functions(), o.functions())
}

func (c callers) functions() []string {
	frames := runtime.CallersFrames(c[:])
	var names []string
	for {
		f, more := frames.Next()
		names = append(names, f.Function)
		if !more {
			return names
		}
	}
}

// fate is the result that is drawn for an interaction.
type fate uint8

// The fates.
const (
	through fate = iota
	crashedBefore
	crashedAfter
	answerLost
	writeLost
	leftUndecided
	notAnswered
	answeredStale
	proposed
	timedOut
	wentLost
	cameTwice
	failing
	landed
	dropped
)

var fateNames = [...]string{
	through: "", crashedBefore: "the process dies before", crashedAfter: "the process dies after", answerLost: "done, the answer is lost",
	writeLost: "lost on the way", leftUndecided: "undecided, in flight", notAnswered: "no answer", answeredStale: "a replica that lags answers",
	proposed: "proposed", timedOut: "timed out", wentLost: "lost", cameTwice: "doubled", failing: "fails",
	landed: "landed", dropped: "dropped",
}

// op is an interaction that a goroutine waits for.
type op struct {
	key  key
	p    *Process
	note string
	// write means that it changes the store. If its answer is lost, the caller does not
	// know whether it did.
	write bool
	// fence is the spelling of the filter that fences a proposed append; empty for
	// writes that are not proposed.
	fence string
	// waitsFor is the sequence of a message that must be stored before a read has an
	// answer; 0 for none.
	waitsFor uint64
	// ready, if not nil, reports whether the interaction can take place; mu is held.
	ready func() bool
	// do carries the interaction out; the scheduler calls it. fate is through,
	// answeredStale or landed.
	do func(fate fate) error
	// check returns nil if a proposal may be made, errSettled if the record is stored.
	check func() error
	// sent, if not nil, records the state of the bus when a write is sent and left in
	// flight.
	sent     func()
	deadline time.Time
	done     chan struct{}
	err      error
	finished bool
	left     bool // its goroutine no longer waits; guarded by world.mu
}

// finish resumes the goroutine; the scheduler calls it.
func (o *op) finish(err error) {
	if !o.finished {
		o.finished, o.err = true, err
		close(o.done)
	}
}

var (
	errEnded   = errors.New("the simulation has ended")
	errWaiting = errors.New("the answer comes later") // of do: another function finishes the op
)

// patience bounds the wait for the bus.
const patience = 5 * time.Second

// interact blocks the calling goroutine until the scheduler resumes it.
func (p *Process) interact(ctx context.Context, o *op) error {
	if ctx.Err() != nil {
		return unavailable(o, context.Cause(ctx))
	}
	o.p, o.key.proc, o.key.who, o.key.from, o.done = p, p.index, actorOf(ctx), callersOf(), make(chan struct{})
	if o.deadline.IsZero() {
		o.deadline = time.Now().Add(patience)
	}
	w := p.world
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return errEnded
	}
	w.arrivals++
	o.key.n = w.arrivals
	if !p.dead { // else there is no answer
		w.pending = append(w.pending, o)
		w.signal()
	}
	w.mu.Unlock()
	select {
	case <-o.done:
		return o.err
	case <-w.over:
		return errEnded
	case <-ctx.Done():
		w.mu.Lock()
		o.left = true
		w.signal()
		w.mu.Unlock()
		return unavailable(o, context.Cause(ctx))
	}
}

func unavailable(o *op, why error) error {
	return fmt.Errorf("%s: %w: %w", o.key.kind, runlog.ErrUnavailable, why)
}

var errNoAnswer = errors.New("no answer")
