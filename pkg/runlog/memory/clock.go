package memory

import (
	"container/heap"
	"sync"
	"time"
)

// clock calls alarms when they are due. One timer serves all of them, so that what
// falls due at one moment has an order: that in which it was set.
type clock struct {
	due     queue
	order   uint64 // of the alarm that was set last
	timer   *time.Timer
	armed   time.Time      // when timer fires; zero while it does not
	ringing bool           // tick sets the timer when it is through
	ticking sync.WaitGroup // the timer while it is armed, and tick
}

// alarm is something that falls due. The zero alarm is not set.
type alarm struct {
	at    time.Time
	order uint64
	place int // in the queue, from 1; 0 when it is not set
	ring  func()
}

// set makes a fall due at a time, and no longer at another one.
func (l *Log) set(a *alarm, at time.Time) {
	c := &l.clock
	c.order++
	a.at, a.order = at, c.order
	if a.place > 0 {
		heap.Fix(&c.due, a.place-1)
	} else {
		heap.Push(&c.due, a)
	}
	l.arm()
}

// unset takes a off the clock.
func (l *Log) unset(a *alarm) {
	if a.place > 0 {
		heap.Remove(&l.clock.due, a.place-1)
		l.arm()
	}
}

// arm makes the timer fire when the first alarm is due.
func (l *Log) arm() {
	c := &l.clock
	var next time.Time
	if len(c.due) > 0 {
		next = c.due[0].at
	}
	if c.ringing || l.over || next.Equal(c.armed) {
		return
	}
	c.stop()
	if next.IsZero() {
		return
	}
	c.armed = next
	c.ticking.Add(1)
	if c.timer == nil {
		c.timer = time.AfterFunc(time.Until(next), l.tick)
	} else {
		c.timer.Reset(time.Until(next))
	}
}

// stop makes the timer not fire any more.
func (c *clock) stop() {
	c.armed = time.Time{}
	if c.timer != nil && c.timer.Stop() {
		c.ticking.Done()
	}
}

// tick rings the alarms that are due.
func (l *Log) tick() {
	defer l.clock.ticking.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	c := &l.clock
	c.armed, c.ringing = time.Time{}, true
	for now := time.Now(); len(c.due) > 0 && !c.due[0].at.After(now); {
		heap.Pop(&c.due).(*alarm).ring()
	}
	c.ringing = false
	l.arm()
}

// queue is a heap of alarms, the first one at the top.
type queue []*alarm

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].order < q[j].order
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push is heap.Interface's.
func (q *queue) Push(x any) {
	a := x.(*alarm)
	*q = append(*q, a)
	a.place = len(*q)
}

// Pop is heap.Interface's.
func (q *queue) Pop() any {
	old := *q
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	a.place = 0
	return a
}
