package jetstream

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// clocks compares the clock of each consumer's leader with that of this process.
//
// A server counts the time since a delivery by its own wall clock. If that goes back, a message
// that was delivered before is due only when the clock has reached that time again, and the step of a worker that
// has died waits until then. Workers that live extend their deliveries, which sets the time again.
type clocks struct {
	// start is the reading of this process's clock from which its time is counted without jumps.
	start time.Time

	mu      sync.Mutex
	offsets map[string]time.Duration // the least offset at the last reading, by consumer
	ahead   map[string]time.Time     // of the newest message, where it was found ahead of the clock, by stream
	turned  chan struct{}            // closed when a clock goes back; nil before the first call of Turned
}

// saw takes a reading of the clock of a consumer's leader, which was made between asked and
// now. It reports whether the clock has gone back by more than tolerance since the last reading. A reading that
// took long is not a clock that has gone back.
func (c *clocks) saw(consumer string, reading, asked, now time.Time, tolerance time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		c.start, c.offsets = asked, map[string]time.Duration{}
	}
	since := reading.Round(0).Sub(c.start.Round(0))
	most, least := since-asked.Sub(c.start), since-now.Sub(c.start)
	before, known := c.offsets[consumer]
	c.offsets[consumer] = least
	if !known || most >= before-tolerance {
		return false
	}
	c.announce()
	return true
}

// sawLast takes the time of the newest message of a stream, and a reading of the clock of its leader. It reports, once
// for each message, whether the clock has gone back since the message was stored: before this process could see
// that.
func (c *clocks) sawLast(stream string, last, reading time.Time, tolerance time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !last.After(reading.Add(tolerance)) || last.Equal(c.ahead[stream]) {
		return false
	}
	if c.ahead == nil {
		c.ahead = map[string]time.Time{}
	}
	c.ahead[stream] = last
	c.announce()
	return true
}

// announce closes the channel that Turned has returned; mu is locked.
func (c *clocks) announce() {
	if c.turned != nil {
		close(c.turned)
		c.turned = nil
	}
}

// compareClock takes the reading in the description of a consumer.
func (l *Log) compareClock(info *jetstream.ConsumerInfo, asked time.Time) {
	if info.TimeStamp.IsZero() {
		return
	}
	if l.clocks.saw(info.Stream+" "+info.Name, info.TimeStamp, asked, time.Now(), l.AckWait()/2) {
		l.logger.Warn("the clock of NATS has gone back: messages without an acknowledgement are delivered again", "stream", info.Stream, "consumer", info.Name, "clock", info.TimeStamp)
	}
}

// compareLast compares the newest message of a stream with the clock of its leader.
func (l *Log) compareLast(p int, info *jetstream.StreamInfo) {
	if !info.TimeStamp.IsZero() && l.clocks.sawLast(runsStream(p), info.State.LastTime, info.TimeStamp, l.AckWait()/2) {
		l.logger.Warn("the clock of NATS has gone back since its newest record: messages without an acknowledgement are delivered again", "stream", runsStream(p), "clock", info.TimeStamp, "record", info.State.LastTime)
	}
}

// Turned implements runlog.RunFollower.
func (l *Log) Turned() <-chan struct{} {
	l.clocks.mu.Lock()
	defer l.clocks.mu.Unlock()
	if l.clocks.turned == nil {
		l.clocks.turned = make(chan struct{})
	}
	return l.clocks.turned
}

// Expire resets the consumers that have unacknowledged messages to their ack floors.
func (l *Log) Expire(ctx context.Context) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	for p := range l.histories {
		stream, err := asked(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.Stream(ctx, runsStream(p)) })
		if err != nil {
			return unavailable("deliver messages again", err)
		}
		var pending []*jetstream.ConsumerInfo
		list := stream.ListConsumers(ctx)
		for info := range list.Info() {
			if info.NumAckPending > 0 {
				pending = append(pending, info)
			}
		}
		if err := list.Err(); err != nil {
			return unavailable("deliver messages again", err)
		}
		for _, info := range pending {
			if _, err := l.js.ResetConsumerToSequence(ctx, runsStream(p), info.Name, info.AckFloor.Stream+1); err != nil {
				return unavailable("deliver messages of "+info.Name+" again", err)
			}
			if executor, ok := strings.CutPrefix(info.Name, execPrefix); ok {
				l.floors.lower(p, executor)
			}
		}
	}
	return nil
}
