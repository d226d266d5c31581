package jetstream

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Headers of a scheduled message.
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// SetTimer schedules a message in the TIMERS stream.
func (l *Log) SetTimer(ctx context.Context, run runlog.Run, parkVersion uint64, at time.Time) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	_, err := l.publish(ctx, &nats.Msg{
		Subject: runlog.TimerSubject(p, run, parkVersion, false),
		Header: nats.Header{
			headerSchedule:       {"@at " + at.UTC().Format(time.RFC3339Nano)},
			headerScheduleTarget: {runlog.TimerSubject(p, run, parkVersion, true)},
		},
	})
	if err != nil {
		return l.unavailable("timer of "+run.String(), err)
	}
	return nil
}

// maxTimers bounds the timers that are handled at the same time.
const maxTimers = 8

// ConsumeTimers delivers timers that fired.
func (l *Log) ConsumeTimers(ctx context.Context, handle func(context.Context, runlog.Run, uint64) error) error {
	return l.pullAll(ctx, timersStream, timerConsumer, maxTimers, func(ctx context.Context, m *nats.Msg, _ *slot) {
		run, version, err := runlog.ParseFired(m.Subject)
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
	})
}
