package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Metrics are the instruments of one process. A nil value counts nothing. The methods
// are safe for concurrent use and do not block.
//
// What happens to runs, turns, models and tools is counted from the records that a
// process has stored (see Log). A record is stored once, despite crashes and fenced-off
// workers, so everything counts once over all processes. Jobs have no records: the worker
// that calls the model counts them.
type Metrics struct {
	meter      metric.Meter
	compaction compactionMetrics
	quality    qualityMetrics

	stepDuration, waitDuration, hopLatency           histogram
	turnOverhead, turnDuration                       histogram
	modelDuration, modelTokens, toolDuration         histogram
	jobDuration                                      histogram
	appends, rpcDuration, httpDuration               histogram
	redeliveries, takeovers, deadLetters, failures   counter
	turns, runsStarted, runsEnded, runsParked        counter
	modelCached, modelRetries, toolCalls, rpcStreams counter
	modelCacheWrites, modelReasoning                 counter
	toolUnknown, unsettled, jobTokens                counter
	modelLimit, modelRemaining                       gauge
	modelCost                                        sum
	rpcOpen, stepsWaiting                            upDown
}

// NewMetrics creates the instruments on a meter. The Observe methods add those that are
// read at each collection.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	m := &Metrics{meter: meter}
	var errs []error
	for _, h := range []struct {
		of instrument
		to *histogram
	}{
		{stepDuration, &m.stepDuration}, {waitDuration, &m.waitDuration}, {hopLatency, &m.hopLatency}, {turnOverhead, &m.turnOverhead}, {turnDuration, &m.turnDuration},
		{modelDuration, &m.modelDuration}, {modelTokens, &m.modelTokens}, {toolDuration, &m.toolDuration},
		{jobDuration, &m.jobDuration}, {appends, &m.appends}, {rpcDuration, &m.rpcDuration}, {httpDuration, &m.httpDuration},
	} {
		errs = append(errs, h.to.create(meter, h.of))
	}
	for _, c := range []struct {
		of instrument
		to *counter
	}{
		{redeliveries, &m.redeliveries}, {takeovers, &m.takeovers}, {deadLetters, &m.deadLetters}, {failures, &m.failures},
		{turns, &m.turns}, {runsStarted, &m.runsStarted}, {runsEnded, &m.runsEnded}, {runsParked, &m.runsParked},
		{modelCached, &m.modelCached}, {modelRetries, &m.modelRetries}, {toolCalls, &m.toolCalls}, {rpcStreams, &m.rpcStreams},
		{modelCacheWrites, &m.modelCacheWrites}, {modelReasoning, &m.modelReasoning}, {toolUnknown, &m.toolUnknown}, {unsettled, &m.unsettled},
		{jobTokens, &m.jobTokens},
	} {
		errs = append(errs, c.to.create(meter, c.of))
	}
	for _, g := range []struct {
		of instrument
		to *gauge
	}{{modelLimit, &m.modelLimit}, {modelRemaining, &m.modelRemaining}} {
		var err error
		g.to.keys = g.of.Attributes
		g.to.to, err = meter.Int64Gauge(g.of.Name, metric.WithUnit(g.of.Unit), metric.WithDescription(g.of.Description))
		errs = append(errs, err)
	}
	var err error
	m.modelCost.keys = modelCost.Attributes
	m.modelCost.to, err = meter.Float64Counter(modelCost.Name, metric.WithUnit(modelCost.Unit), metric.WithDescription(modelCost.Description))
	errs = append(errs, err)
	for _, u := range []struct {
		of instrument
		to *upDown
	}{{rpcOpen, &m.rpcOpen}, {stepsWaiting, &m.stepsWaiting}} {
		u.to.keys = u.of.Attributes
		u.to.to, err = meter.Int64UpDownCounter(u.of.Name, metric.WithUnit(u.of.Unit), metric.WithDescription(u.of.Description))
		errs = append(errs, err)
	}
	errs = append(errs, m.compaction.create(meter)...)
	errs = append(errs, m.quality.create(meter)...)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("create instruments: %w", err)
	}
	return m, nil
}

// Outcome is the result of a step's delivery to a worker.
type Outcome string

// The outcomes of steps.
const (
	Committed Outcome = "committed"  // what it led to is stored, be it that the run failed
	FencedOff Outcome = "fenced_off" // another worker has it
	Failed    Outcome = "failed"     // an error or a panic; it is redelivered
	PutBack   Outcome = "put_back"   // something was unavailable, or the worker stops; it is redelivered
	NotMine   Outcome = "not_mine"   // done before, or in work here already
)

// Serves registers this process as an executor: its rare counters are exposed as 0 from
// now on, so that the first event is visible as a change.
func (m *Metrics) Serves(ctx context.Context, executor string) {
	if m == nil {
		return
	}
	for _, c := range []*counter{&m.redeliveries, &m.takeovers, &m.deadLetters, &m.failures} {
		c.add(ctx, 0, executor)
	}
	m.Writes(ctx, executor)
	switch executor {
	case workflow.Turn:
		m.toolUnknown.add(ctx, 0)
	case workflow.Compaction:
		m.compaction.serves(ctx)
	case workflow.StopDecision:
		for _, e := range ends() {
			m.runsEnded.add(ctx, 0, e.status, e.reason)
		}
	}
}

// Writes registers this process as a writer to runs' logs: undecided writes are exposed
// as 0 from now on. Serves includes it.
func (m *Metrics) Writes(ctx context.Context, executor string) {
	if m != nil {
		m.unsettled.add(ctx, 0, executor)
	}
}

// StepReceived counts a delivery to an executor. committed is when the record was made,
// zero if unknown.
func (m *Metrics) StepReceived(ctx context.Context, executor string, redelivered bool, committed, now time.Time) {
	switch {
	case m == nil:
	case redelivered:
		m.redeliveries.add(ctx, 1, executor)
	case !committed.IsZero():
		// The clocks of two machines differ a little.
		m.hopLatency.record(ctx, max(now.Sub(committed), 0).Seconds(), executor)
	}
}

// WaitEnd is what ended a wait of a step.
type WaitEnd string

// The ends of waits.
const (
	WaitChanged WaitEnd = "changed" // something that it waits for was reported
	WaitInput   WaitEnd = "input"   // the run's inbox has a new item
	WaitPoll    WaitEnd = "poll"    // nothing was reported for some time
	WaitUntil   WaitEnd = "until"   // the time that the decision set
	WaitStopped WaitEnd = "stopped" // the worker stops, or another worker has the step
)

// Waiting changes the number of steps that wait in this process by n.
func (m *Metrics) Waiting(ctx context.Context, executor string, n int) {
	if m != nil {
		m.stepsWaiting.add(ctx, int64(n), executor)
	}
}

// WaitEnded counts the end of a wait.
func (m *Metrics) WaitEnded(ctx context.Context, executor string, end WaitEnd, took time.Duration) {
	if m != nil {
		m.waitDuration.record(ctx, max(took, 0).Seconds(), executor, string(end))
	}
}

// StepEnded counts the result of a delivery. took does not include waits.
func (m *Metrics) StepEnded(ctx context.Context, executor string, outcome Outcome, took time.Duration) {
	if m != nil {
		m.stepDuration.record(ctx, max(took, 0).Seconds(), executor, string(outcome))
	}
}

// DeadLetter counts a step that an executor has given up.
func (m *Metrics) DeadLetter(ctx context.Context, executor string) {
	if m != nil {
		m.deadLetters.add(ctx, 1, executor)
	}
}
