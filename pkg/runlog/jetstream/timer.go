package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Headers of a scheduled message.
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// SetTimer schedules a message to itself in the TIMERS stream.
func (l *Log) SetTimer(ctx context.Context, run runlog.Run, parkVersion uint64, at time.Time) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	_, err := l.js.PublishMsg(ctx, &nats.Msg{
		Subject: runlog.TimerSubject(p, run, parkVersion, false),
		Header: nats.Header{
			headerSchedule:       {"@at " + at.UTC().Format(time.RFC3339Nano)},
			headerScheduleTarget: {runlog.TimerSubject(p, run, parkVersion, true)},
		},
	})
	if err != nil {
		return unavailable("timer of "+run.String(), err)
	}
	return nil
}

// ConsumeTimers delivers timers that fired.
func (l *Log) ConsumeTimers(ctx context.Context, handle func(context.Context, runlog.Run, uint64) error) error {
	var running intake
	defer running.stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	for p := range l.partitions {
		consumer, err := l.js.Consumer(ctx, timersStream(p), timerConsumer)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("stream %s has no consumer %s: run `harness provision`", timersStream(p), timerConsumer)
		}
		if err != nil {
			return ended(ctx, unavailable("timers", err))
		}
		c, err := consumer.Consume(func(m jetstream.Msg) {
			if ctx.Err() != nil {
				return // unhandled: it is delivered again
			}
			run, version, err := runlog.ParseFired(m.Subject())
			if err != nil {
				_ = m.Term()
				return
			}
			if err := handle(ctx, run, version); err != nil {
				if ctx.Err() == nil {
					l.logger.Warn("timer", "run", run.String(), "error", err)
				}
				_ = m.NakWithDelay(time.Second)
				return
			}
			_ = m.Ack()
		}, jetstream.PullMaxMessages(prefetch))
		if err != nil {
			return ended(ctx, unavailable("timers", err))
		}
		running.add(c, func() { cancel(fmt.Errorf("timers: %w: deliveries have stopped", runlog.ErrUnavailable)) })
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
