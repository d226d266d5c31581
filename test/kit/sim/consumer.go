package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Names of the consumers that always exist. They are not valid executor names.
const (
	wakes      = ".wake"
	timersName = ".timers"
	jobs       = ".jobs"
)

// consumer is a durable consumer. All listeners share its messages, which outlive them.
type consumer struct {
	name  string
	held  []*assignment // not acknowledged, in order
	floor uint64
	// served is set once there was a listener.
	served bool
}

// assignment is a message that a consumer delivers until it is acknowledged.
type assignment struct {
	sequence uint64
	message  *message // nil for a timer
	timer    *timer
	count    int // deliveries so far
	// out means that a worker has it until due. Otherwise it can be delivered from due
	// on.
	out bool
	due time.Time
}

// listener is a process that consumes.
type listener struct {
	p        *Process
	consumer *consumer
	ctx      context.Context //nolint:containedctx // that of the call to Consume
	room     int
	handle   func(context.Context, *delivery)
	handling sync.WaitGroup
	gone     bool // guarded by world.mu
	busy     int  // guarded by world.mu
	resumed  int  // deliveries that continue after a wait; guarded by world.mu
}

func (w *World) consumer(name string) *consumer {
	for _, c := range w.consumers {
		if c.name == name {
			return c
		}
	}
	return nil
}

// consume adds a listener to a consumer until ctx ends.
func (p *Process) consume(ctx context.Context, name string, room int, handle func(context.Context, *delivery)) error {
	w := p.world
	c := w.consumer(name)
	if c == nil {
		return errors.New("no consumer " + name + ": name it in Config.Executors")
	}
	l := &listener{p: p, consumer: c, ctx: ctx, room: max(room, 1), handle: handle}
	w.mu.Lock()
	p.listeners = append(p.listeners, l)
	c.served = true
	w.signal()
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	l.gone = true
	w.mu.Unlock()
	l.handling.Wait()
	return context.Cause(ctx)
}

// enqueue adds a message to its consumers.
func (w *World) enqueue(m *message) {
	names := [2]string{}
	if m.item != nil {
		names[0] = wakes
	} else if m.job != nil {
		names[0] = jobs
	} else if to := m.record().GetStep().GetTo(); runlog.IsRest(to) {
		names[0] = wakes
	} else if to != "" {
		names[0] = to
	}
	if c := w.consumer(names[0]); c != nil {
		c.held = append(c.held, &assignment{sequence: m.sequence, message: m})
	}
}

// ready reports whether h can be delivered at now.
func (h *assignment) ready(now time.Time) bool { return !h.out && !now.Before(h.due) }

// expire ends deliveries that have expired, and removes deleted messages.
func (w *World) expire(now time.Time) {
	for _, c := range w.consumers {
		c.held = slices.DeleteFunc(c.held, func(h *assignment) bool { return h.message != nil && h.message.gone })
		for _, h := range c.held {
			if h.out && !now.Before(h.due) {
				h.out = false
			}
		}
	}
}

// remove removes an acknowledged message.
func (c *consumer) remove(sequence uint64) {
	for i, h := range c.held {
		if h.sequence == sequence {
			c.held = append(c.held[:i], c.held[i+1:]...)
			c.floor = max(c.floor, sequence)
			return
		}
	}
}

func (c *consumer) find(sequence uint64) *assignment {
	for _, h := range c.held {
		if h.sequence == sequence {
			return h
		}
	}
	return nil
}

// ackFloor returns the sequence up to which everything is acknowledged.
func (c *consumer) ackFloor() uint64 {
	if len(c.held) > 0 {
		return min(c.floor, c.held[0].sequence-1)
	}
	return c.floor
}

// deliver delivers a message to a listener that is drawn.
func (w *World) deliver(c *consumer, h *assignment, to []*listener) {
	l := to[w.random.IntN(len(to))]
	fate := through
	r := w.cfg.Rates
	switch {
	case w.chance(r.LostDelivery):
		fate = wentLost
	case w.chance(r.Duplicate):
		fate = cameTwice
	}
	h.count++
	h.out, h.due = true, time.Now().Add(w.ackWait)
	e := event{who: l.p.Instance, kind: onDeliver, text: c.name, a: h.sequence, b: uint64(h.count), fate: fate}
	if h.message != nil {
		e.run = h.message.log.Run.ID
		e.note = describe(h.message)
	} else {
		e.run = h.timer.run.ID
	}
	w.record(e)
	if fate == wentLost {
		return
	}
	if fate == cameTwice {
		h.out = false
	}
	d := &delivery{l: l, h: h, count: h.count, until: time.Now().Add(w.ackWait * 9 / 10)}
	if h.message != nil {
		d.entry = h.message.entry
	}
	d.enter(&l.busy)
	l.handling.Go(func() {
		defer func() { d.leave() }()
		l.handle(l.ctx, d)
	})
}

// delivery is one delivery of a message.
type delivery struct {
	l     *listener
	h     *assignment
	entry runlog.Entry
	count int
	leave func() // frees the delivery's slot; only its handler calls it

	mu    sync.Mutex
	until time.Time
	sent  int
	ended bool // acknowledged or put back
}

// Entry returns the record, or the place of the inbox item.
func (d *delivery) Entry() runlog.Entry { return d.entry }

// IsInbox reports whether the message is an inbox item.
func (d *delivery) IsInbox() bool { return d.h.message != nil && d.h.message.item != nil }

// Redelivered reports whether the server knows that it delivered the message before.
func (d *delivery) Redelivered() bool { return d.count > 1 }

// Number returns the number of the delivery, as far as the server knows.
func (d *delivery) Number() uint64 { return uint64(d.count) }

var errOver = errors.New("the delivery is over: the message was held for too long")

var errAcknowledged = errors.New("the delivery is over: it was acknowledged or put back")

// Ack acknowledges the message. It may get lost.
func (d *delivery) Ack() error { return d.send(ack, 0, false) }

// Nak puts the message back, unless the delivery has expired.
func (d *delivery) Nak(delay time.Duration) error { return d.send(nak, delay, true) }

// InProgress extends a delivery that has not expired.
func (d *delivery) InProgress() error { return d.send(progress, 0, true) }

// control is an acknowledgement on its way to the server.
type control struct {
	d     *delivery
	what  string
	delay time.Duration
	nth   int
	// step is the newest step of the run when it was sent. completed means that its job
	// had its result then.
	step      uint64
	completed bool
}

const (
	ack      = "ack"
	nak      = "nak"
	progress = "in progress"
)

// foreignViews is the number of successive views of a run with a newest record of another
// worker after which a worker must have detected that: some of them may be of other parts of
// it, between the view of a heartbeat and its extension.
const foreignViews = 3

// viewed counts the views of a run whose newest record is neither of this process nor the
// one that it asked for.
func (p *Process) viewed(run runlog.Run, newest runlog.Entry, contains uint64) {
	if newest.Sequence == contains || newest.Record.GetWriter().GetInstance() == p.Instance {
		delete(p.foreign, run)
		return
	}
	if p.foreign == nil {
		p.foreign = map[runlog.Run]foreignRecord{}
	}
	p.foreign[run] = foreignRecord{views: p.foreign[run].views + 1, sequence: newest.Sequence}
}

// foreignRecord is the newest record of a run, which another process wrote, and the number of
// successive views of it.
type foreignRecord struct {
	views    int
	sequence uint64
}

func (d *delivery) send(what string, delay time.Duration, holding bool) error {
	now := time.Now()
	w := d.l.p.world
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return errAcknowledged
	}
	if holding && now.After(d.until) {
		return errOver
	}
	if what == progress {
		d.until = now.Add(w.ackWait * 9 / 10)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.l.p.dead || w.ended {
		return errNoAnswer
	}
	m := d.h.message
	if what == progress && m != nil && m.record() != nil && !m.log.state.expired && d.l.p.foreign[m.log.Run].views > foreignViews &&
		d.l.p.foreign[m.log.Run].sequence != m.sequence { // a view for an item of the inbox shows the step itself
		w.broken("a worker extends only a step that it holds",
			fmt.Sprintf("%s extends sequence %d of %s, whose newest record is of another worker in %d views", d.l.p.Instance, m.sequence, m.log.Run, d.l.p.foreign[m.log.Run].views))
	}
	d.sent++
	d.ended = what != progress
	c := &control{d: d, what: what, delay: delay, nth: d.sent}
	if m := d.h.message; m != nil && m.job != nil {
		c.completed = m.completed()
	} else if m != nil {
		for i := len(m.log.records) - 1; i >= 0; i-- {
			if m.log.records[i].record().GetStep() != nil {
				c.step = m.log.records[i].sequence
				break
			}
		}
	}
	d.l.p.controls = append(d.l.p.controls, c)
	w.signal()
	return nil
}

// arrive applies an acknowledgement. The server does not check its sender: it counts by
// sequence.
func (w *World) arrive(p *Process, at int) {
	c := p.controls[at]
	p.controls = append(p.controls[:at], p.controls[at+1:]...)
	fate := through
	if w.chance(w.cfg.Rates.LostAck) {
		fate = wentLost
	}
	consumer := c.d.l.consumer
	e := event{who: c.d.l.p.Instance, kind: onControl, text: c.what + " " + consumer.name, a: c.d.h.sequence, b: uint64(c.d.count), fate: fate}
	if m := c.d.h.message; m != nil {
		e.run = m.log.Run.ID
	}
	w.record(e)
	if c.what == ack {
		w.acked(c)
	}
	if fate == wentLost {
		return
	}
	h := consumer.find(c.d.h.sequence)
	if h == nil {
		return
	}
	switch c.what {
	case ack:
		consumer.remove(h.sequence)
	case nak:
		h.out, h.due = false, time.Now().Add(c.delay)
	case progress:
		if h.out {
			h.due = time.Now().Add(w.ackWait)
		}
	}
}
