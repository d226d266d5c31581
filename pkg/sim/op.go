package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// kind of an interaction of a process with the world.
type kind uint8

// The kinds. Their order decides nothing but the order in which equal choices are
// listed.
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
)

var kindNames = [...]string{
	onAppend: "append", onInbox: "give input", onBlob: "store blob", onTimer: "set timer", onErase: "erase",
	onView: "view", onRead: "read", onLastInbox: "look at inbox", onItems: "read inbox", onGetBlob: "read blob",
	onExecutors: "list executors", onFloor: "ack floor", onSubscribe: "subscribe", onRuns: "follow runs",
	onDescribe: "describe host", onExecute: "execute tool", onCancel: "cancel tools", onModel: "ask model", onAnswer: "model answers",
	onDeliver: "deliver", onControl: "acknowledge", onFeed: "feed", onFollow: "follow", onDelta: "delta", onPoke: "poke",
	onLand: "land", onToolEnd: "tool ends", onToolAnswer: "tool answers", onFault: "fault", onCall: "call", onHook: "call hook",
}

func (k kind) String() string { return kindNames[k] }

// key identifies something pending, whatever goroutine came first.
type key struct {
	proc int
	kind kind
	run  string
	text string
	a, b uint64
	who  string // whom it is for, where all else is equal
	n    uint64 // tells apart what is equal otherwise
}

func (k key) compare(o key) int {
	if c := cmp.Or(cmp.Compare(k.proc, o.proc), cmp.Compare(k.kind, o.kind)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(k.run, o.run), cmp.Compare(k.a, o.a), cmp.Compare(k.b, o.b), cmp.Compare(k.text, o.text), cmp.Compare(k.who, o.who), cmp.Compare(k.n, o.n))
}

// fate is what becomes of an interaction.
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
	writeLost: "lost on the way", leftUndecided: "undecided, in flight", notAnswered: "no answer", answeredStale: "a replica that is behind answers",
	proposed: "proposed", timedOut: "timed out", wentLost: "lost", cameTwice: "doubled", failing: "fails",
	landed: "landed", dropped: "dropped",
}

// op is an interaction that a goroutine waits for.
type op struct {
	key  key
	p    *Process
	note string
	// write says that it changes what is stored: an answer that is lost leaves it
	// open whether it has.
	write bool
	// fence is the spelling of the filter that a proposed append is fenced by; empty
	// for writes that are not proposed.
	fence string
	// waitsFor is the sequence of a message that has to be stored before a read can be
	// answered; 0 for none.
	waitsFor uint64
	// do carries it out; it is called by the scheduler. fate is one of through,
	// answeredStale or landed.
	do func(fate fate) error
	// check says whether a proposal may be made; errSettled when it is stored.
	check func() error
	// sent, when not nil, notes what the bus looked like when a write was sent that
	// is left in flight.
	sent     func()
	deadline time.Time
	done     chan struct{}
	err      error
	finished bool
	left     bool // its goroutine waits no more; guarded by world.mu
}

// finish lets the goroutine go on; it is called by the scheduler.
func (o *op) finish(err error) {
	if !o.finished {
		o.finished, o.err = true, err
		close(o.done)
	}
}

var (
	errEnded   = errors.New("the simulation has ended")
	errWaiting = errors.New("the answer comes later") // of do: someone else finishes the op
)

// patience is how long the bus is waited for.
const patience = 5 * time.Second

// interact parks the calling goroutine until the scheduler lets it go on.
func (p *Process) interact(ctx context.Context, o *op) error {
	if ctx.Err() != nil {
		return unavailable(o, context.Cause(ctx))
	}
	o.p, o.key.proc, o.key.who, o.done = p, p.index, actorOf(ctx), make(chan struct{})
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
	if !p.dead { // else nobody answers
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
