package telemetry

import (
	"context"
	"errors"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Log is a run log that counts the records that are stored through it. Close it after the last
// append.
type Log struct {
	runlog.Log
	m      *Metrics
	cycles *cycles
}

// NewLog returns a log that stores in log and counts its records.
func NewLog(log runlog.Log, m *Metrics) *Log {
	return &Log{Log: log, m: m, cycles: startCycles(log, m)}
}

// Close ends the log's background work.
func (l *Log) Close() { l.cycles.close() }

// Append appends and counts.
func (l *Log) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	began := time.Now()
	sequence, err := l.Log.Append(ctx, rec)
	now := time.Now()
	outcome := "stored"
	switch {
	case err == nil:
	case errors.Is(err, runlog.ErrFenced):
		outcome = "fenced_off"
	case errors.Is(err, runlog.ErrUnavailable):
		outcome = "unsettled"
		l.m.unsettled.add(ctx, 1, rec.GetWriter().GetExecutor())
	default:
		outcome = "refused"
	}
	l.m.appends.record(ctx, now.Sub(began).Seconds(), rec.GetWriter().GetExecutor(), outcome)
	if err != nil {
		return sequence, err
	}
	l.m.stored(ctx, rec)
	if step := rec.GetStep(); step != nil && endsCycle(step) {
		l.cycles.sampleEnd(runlog.Entry{
			Run:      runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()},
			Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec,
		}, now)
	}
	return sequence, nil
}
