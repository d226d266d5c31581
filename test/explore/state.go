package explore

import (
	"bytes"
	"slices"
)

// seq is a place in the stream, from 1. Log and inbox share one stream, so there is
// one count for both.
type seq = uint8

// bodyID names what a record holds, itemID an input: see bodies.
type (
	bodyID = int16
	itemID = int8
)

const noItem itemID = -1

// status is the state of a message in its consumer.
type status uint8

const (
	untracked status = iota // no consumer of the model has it
	pending                 // to be delivered
	held                    // with a worker
	acked
)

// message is one message of the stream: a record of the log or an inbox item.
type message struct {
	item    itemID // noItem for a record
	body    bodyID
	version uint8
	prev    seq // the record, or the item, that it follows
	status  status
	again   bool // delivered before
}

// pc is the pending action of an actor.
type pc uint8

const (
	idle pc = iota
	// A wake worker.
	viewing
	appending
	// A repair worker.
	checking
	observing
	committing
	// Both.
	acking
	// A sender, and the handler of a timer.
	confirming // nothing is to be stored; asks the leader whether the read was stale
	seeking    // admitted; searches for the item before it appends it
	publishing // knows the item to append after
	comparing  // appended; reads whether another answer came first
	finished
)

// worker is a wake worker or a repair worker. Two that are equal are the same.
type worker struct {
	at      pc
	message seq
	owns    bool // the delivery is still this worker's
	body    bodyID
	fence   seq
	version uint8
}

// answer is the reply to a sender.
type answer uint8

const (
	none answer = iota
	stored
	existed
	unneeded        // OK, and nothing was stored
	alreadyAnswered // ALREADY_EXISTS
	notPending      // FAILED_PRECONDITION: the call does not wait for that
	runEnded        // FAILED_PRECONDITION: the run has ended
	unavailable     // UNAVAILABLE: nothing is known
	timerIsStale    // only for timers
	timerIsStored   // only for timers
	timerWasStored  // only for timers: the item of an earlier firing is beyond the cursor
)

// sender is a client with the gateway that it talks to, or the handing on of a timer.
type sender struct {
	at     pc
	item   itemID
	again  uint8 // attempts to be made although it has an answer
	tries  uint8 // attempts begun
	answer answer
	after  seq   // the cursor that it goes by
	by     seq   // of an answer: the newest record that it was judged by
	fence  seq   // the newest item, after which the item is appended
	stored seq   // where its item is
	found  bool  // not appended, but found in the inbox
	due    uint8 // of a timer: when it fires, in hours since noon
	next   uint8 // of one that fired: it was set again, and fires again then; 0 if it was not
	fired  bool  // it has
	told   bool  // that its item is stored, now or by an attempt before
}

// flight is an append whose sender has no answer and that the stream may still take
// in.
type flight struct {
	item    itemID
	body    bodyID
	fence   seq
	version uint8
}

// Faults counts what may still go wrong.
type Faults struct {
	// Crashes of a worker or a gateway between any two of its actions.
	Crashes uint8
	// Lost acknowledgements, and appends without an answer: stored immediately, stored
	// later or never.
	Lost uint8
	// Stale reads: from a stale replica.
	Stale uint8
	// Lapses: a delivery that is repeated while a worker still works on it.
	Lapses uint8
}

// state is all that is known of the world.
type state struct {
	stream    []message
	wakers    []worker
	repairers []worker
	senders   []sender
	sweeper   worker
	flights   []flight
	left      Faults
	// clock is the time in hours since noon: that of the last timer that fired.
	clock uint8
	// happened are the effects that the log holds; it follows from the stream.
	happened effects
	// asked are the calls that were ever awaited, a bit each; it follows too.
	asked uint64
}

func (s *state) clone() *state {
	c := *s
	c.stream = append(make([]message, 0, len(s.stream)+2), s.stream...)
	c.wakers = slices.Clone(s.wakers)
	c.repairers = slices.Clone(s.repairers)
	c.senders = slices.Clone(s.senders)
	c.flights = slices.Clone(s.flights)
	return &c
}

// newest is the sequence of the newest message.
func (s *state) newest() seq { return seq(len(s.stream)) }

func (s *state) at(n seq) *message { return &s.stream[n-1] }

// record is the newest record up to u, 0 when there is none.
func (s *state) record(u seq) seq {
	for ; u > 0 && s.at(u).item != noItem; u-- {
	}
	return u
}

// item is the newest inbox item up to u, 0 when there is none.
func (s *state) item(u seq) seq {
	for ; u > 0 && s.at(u).item == noItem; u-- {
	}
	return u
}

// canonical brings equivalent states into one form: workers
// that do the same are interchangeable, and so are appends under way.
func (s *state) canonical() {
	slices.SortFunc(s.wakers, compareWorkers)
	slices.SortFunc(s.repairers, compareWorkers)
	slices.SortFunc(s.flights, func(a, b flight) int {
		return bytes.Compare(encodeFlight(a, nil), encodeFlight(b, nil))
	})
}

func compareWorkers(a, b worker) int {
	for _, d := range []int{
		int(a.at) - int(b.at), int(a.message) - int(b.message), int(a.body) - int(b.body),
		int(a.fence) - int(b.fence), int(a.version) - int(b.version),
	} {
		if d != 0 {
			return d
		}
	}
	switch {
	case a.owns == b.owns:
		return 0
	case b.owns:
		return -1
	}
	return 1
}

// encode appends the canonical form of s; what lies in the stream up to base is the
// same in all states.
func (s *state) encode(base seq, b []byte) []byte {
	b = append(b, s.left.Crashes, s.left.Lost, s.left.Stale, s.left.Lapses)
	b = append(b, byte(len(s.stream)), byte(len(s.senders)), byte(len(s.flights)), s.clock)
	for _, m := range s.stream[base:] {
		b = append(b, byte(m.item), byte(m.status)<<1|bit(m.again), byte(m.body), byte(m.body>>8), m.version, m.prev)
	}
	for _, workers := range [][]worker{s.wakers, s.repairers, {s.sweeper}} {
		for _, w := range workers {
			b = append(b, byte(w.at))
			if w.at != idle {
				b = append(b, w.message, bit(w.owns), byte(w.body), byte(w.body>>8), w.fence, w.version)
			}
		}
	}
	for _, c := range s.senders {
		b = append(b, byte(c.at), byte(c.item), c.tries, byte(c.answer)<<2|bit(c.told)<<1|bit(c.found), c.after, c.by, c.fence, c.stored, c.due, c.next, bit(c.fired))
	}
	for _, f := range s.flights {
		b = encodeFlight(f, b)
	}
	return b
}

func encodeFlight(f flight, b []byte) []byte {
	return append(b, byte(f.item), byte(f.body), byte(f.body>>8), f.fence, f.version)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
