package jetstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestAClockThatGoesBack: only a clock that goes back by more than the tolerance counts, each consumer's
// by itself; not one that goes ahead, not an answer that takes long, and not this process's own clock.
func TestAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	const tolerance = time.Second
	begin := time.Now()
	type sample struct {
		consumer          string
		at, asked, answer time.Duration
	}
	for name, c := range map[string]struct {
		samples []sample
		want    bool // of the last one
	}{
		"the first":                         {[]sample{{"a", 0, 0, 0}}, false},
		"as this process's clock":           {[]sample{{"a", 0, 0, 0}, {"a", 5 * time.Second, 5 * time.Second, 5 * time.Second}}, false},
		"ahead":                             {[]sample{{"a", 0, 0, 0}, {"a", time.Hour, 5 * time.Second, 5 * time.Second}}, false},
		"ahead and back":                    {[]sample{{"a", 0, 0, 0}, {"a", time.Hour, 5 * time.Second, 5 * time.Second}, {"a", 10 * time.Second, 10 * time.Second, 10 * time.Second}}, true},
		"ahead, and back after a long wait": {[]sample{{"a", time.Hour, 0, 0}, {"a", 9 * time.Second, 5 * time.Second, 10 * time.Second}}, true},
		"back":                              {[]sample{{"a", 0, 0, 0}, {"a", -time.Hour, 5 * time.Second, 5 * time.Second}}, true},
		"back by less than the tolerance":   {[]sample{{"a", 0, 0, 0}, {"a", 4100 * time.Millisecond, 5 * time.Second, 5 * time.Second}}, false},
		"a reading from the beginning":      {[]sample{{"a", 2 * time.Second, 0, 2 * time.Second}, {"a", 3 * time.Second, 3 * time.Second, 9 * time.Second}}, false},
		"of another leader":                 {[]sample{{"a", time.Hour, 0, 0}, {"b", 0, 0, 0}}, false},
		"once":                              {[]sample{{"a", time.Hour, 0, 0}, {"a", 0, 0, 0}, {"a", time.Second, time.Second, time.Second}}, false},
	} {
		var clocks clocks
		got := false
		for _, r := range c.samples {
			got = clocks.saw(r.consumer, begin.Add(r.at), begin.Add(r.asked), begin.Add(r.answer), tolerance)
		}
		if got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	var c clocks
	for i, want := range []bool{true, false} {
		if got := c.sawLast("s", begin.Add(time.Hour), begin, tolerance); got != want {
			t.Errorf("a record ahead of the clock, reading %d: %t", i, got)
		}
	}
	if c.sawLast("s", begin.Add(tolerance), begin, tolerance) || !c.sawLast("other", begin.Add(time.Hour), begin, tolerance) {
		t.Error("a record within the tolerance counts, or one of another stream does not")
	}
}

// TestTurnedIsAnnounced: a clock that goes back closes the channel, and the next one another.
func TestTurnedIsAnnounced(t *testing.T) {
	t.Parallel()
	var l Log
	now := time.Now()
	for range 2 {
		turned := l.Turned()
		l.clocks.saw("a", now.Add(time.Hour), now, now, time.Second)
		select {
		case <-turned:
			t.Fatal("a clock that goes ahead is announced")
		default:
		}
		l.clocks.saw("a", now, now, now, time.Second)
		<-turned
	}
}

// TestExpire: a step whose worker has died is delivered although its delivery lies ahead of the server's
// clock. (A delay of the delivery gives it the time that a clock that is ahead gives it.)
func TestExpire(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l := open(t, e, Config{}, Layout{})
	other := kept(t, l, first("other"))
	kept(t, l, first("dead"))
	deliveries := make(chan runlog.Delivery, 2)
	ctx, cancel := context.WithCancel(t.Context())
	consumed := make(chan error, 1)
	go func() {
		consumed <- l.Consume(ctx, "turn", 2, func(_ context.Context, d runlog.Delivery) { deliveries <- d })
	}()
	both := map[string]runlog.Delivery{}
	for range 2 {
		d := <-deliveries
		both[d.Entry().Run.ID] = d
	}
	if err := errors.Join(both["dead"].Nak(time.Hour), both["other"].Ack()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-consumed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	eventually(t, "the delay and the acknowledgement that follows it have arrived", func() bool {
		floor, err := l.AckFloor(t.Context(), other.Run, "turn")
		return err == nil && floor == other.Sequence
	})
	if err := l.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, l, 1, true); !got["dead"] {
		t.Errorf("%v is delivered", got)
	}
}

// TestWorkersReadTheClock: a worker that has seen the clock of its consumer's leader an hour ahead finds, when it
// next reads the takeover time, that it has gone back.
func TestWorkersReadTheClock(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l := open(t, e, Config{}, Layout{})
	p := &pull{log: l, stream: runsStream(0), durable: execConsumer("turn"), lapse: time.Minute}
	turned, now := l.Turned(), time.Now()
	l.clocks.saw(p.stream+" "+p.durable, now.Add(time.Hour), now, now, time.Second)
	p.renew(t.Context())
	select {
	case <-turned:
	default:
		t.Error("the worker has not compared the clock")
	}
	turned = l.Turned()
	p.renew(t.Context())
	select {
	case <-turned:
		t.Error("a clock that continues has gone back")
	default:
	}
}
