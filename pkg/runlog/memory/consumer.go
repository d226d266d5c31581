package memory

import (
	"slices"
	"time"
)

// consumer is the state of a durable consumer, as a server keeps it: which of its
// messages are to be delivered, which are held, and who is free to take one. Who
// calls its methods has locked the log.
type consumer struct {
	log *Log
	// jobs are those of its messages that are not acknowledged, and some that are,
	// by sequence; the first next of them were delivered.
	jobs []*job
	next int
	open map[uint64]*job // not acknowledged, by sequence
	// floor is the newest message up to which all are acknowledged.
	floor uint64
	// again are to be delivered again, before those that never were.
	again   []*job
	workers []*worker // who was given a message last is last
}

// job is a message on its way through a consumer.
type job struct {
	message *message
	// count of its deliveries.
	count int
	// held from its first delivery on. queued among those to be delivered again.
	held, queued, done bool
	deadline           alarm // of a job that is held and not queued
	// finished, when not nil, is called when the job is done.
	finished func()
}

// worker is a call that takes messages.
type worker struct {
	size, busy int
	live       func() bool
	begin      func(*job)
}

func newConsumer(l *Log) *consumer { return &consumer{log: l, open: map[uint64]*job{}} }

func (j *job) sequence() uint64 { return j.message.entry.Sequence }

// add takes a new message in. Its sequence is above all others.
func (c *consumer) add(j *job) {
	j.deadline.ring = func() { c.back(j) }
	c.jobs = append(c.jobs, j)
	c.open[j.sequence()] = j
	c.serve()
}

// serve gives messages to workers that are free, in turn.
func (c *consumer) serve() {
	for !c.log.over {
		j := c.first()
		if j == nil {
			return
		}
		w := c.idle()
		if w == nil {
			return
		}
		if j.queued {
			c.again = c.again[1:]
		} else {
			c.next++
		}
		j.count++
		j.held, j.queued = true, false
		c.log.set(&j.deadline, time.Now().Add(c.log.ackWait))
		w.busy++
		w.begin(j)
	}
}

// first is the message that is delivered next; nil when there is none.
func (c *consumer) first() *job {
	for len(c.again) > 0 && c.again[0].done {
		c.again = c.again[1:]
	}
	if len(c.again) > 0 {
		return c.again[0]
	}
	for c.next < len(c.jobs) && c.jobs[c.next].done {
		c.next++
	}
	if c.next < len(c.jobs) {
		return c.jobs[c.next]
	}
	return nil
}

// idle is the worker whose turn it is among those that are free; nil when none is.
func (c *consumer) idle() *worker {
	for i, w := range c.workers {
		if w.busy < w.size && w.live() {
			c.workers = append(slices.Delete(c.workers, i, i+1), w)
			return w
		}
	}
	return nil
}

// join lets a worker take messages.
func (c *consumer) join(w *worker) {
	c.workers = append(c.workers, w)
	c.serve()
}

// leave ends that.
func (c *consumer) leave(w *worker) {
	c.workers = slices.DeleteFunc(c.workers, func(other *worker) bool { return other == w })
}

// freed takes it that a worker has handled a message.
func (c *consumer) freed(w *worker) {
	w.busy--
	c.serve()
}

// back puts a message among those to be delivered again.
func (c *consumer) back(j *job) {
	c.log.unset(&j.deadline)
	j.queued = true
	c.again = append(c.again, j)
	c.serve()
}

// ack is done with a message, whoever had it.
func (c *consumer) ack(sequence uint64) {
	j := c.open[sequence]
	if j == nil {
		return
	}
	j.done = true
	c.log.unset(&j.deadline)
	delete(c.open, sequence)
	done := 0
	for done < len(c.jobs) && c.jobs[done].done {
		c.floor = c.jobs[done].sequence()
		done++
	}
	c.jobs, c.next = c.jobs[done:], max(c.next-done, 0)
	if j.finished != nil {
		j.finished()
	}
}

// nakPause is the least time after which a message that was put back is delivered
// again. Over a network it takes some time too. Without it, workers that put back
// all they get would keep everybody else from running and a fake clock from moving.
const nakPause = 5 * time.Millisecond

// nak puts back a message that is held.
func (c *consumer) nak(sequence uint64, delay time.Duration) {
	if j := c.open[sequence]; j != nil && j.held && !j.queued {
		c.log.set(&j.deadline, time.Now().Add(max(delay, nakPause)))
	}
}

// extend holds a message for another AckWait.
func (c *consumer) extend(sequence uint64) {
	if j := c.open[sequence]; j != nil && j.held && !j.queued {
		c.log.set(&j.deadline, time.Now().Add(c.log.ackWait))
	}
}

// forget takes all that is not acknowledged for new.
func (c *consumer) forget() {
	for _, j := range c.jobs {
		c.log.unset(&j.deadline)
		j.count, j.held, j.queued = 0, false, false
	}
	c.again, c.next = nil, 0
	c.serve()
}
