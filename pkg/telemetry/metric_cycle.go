package telemetry

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// cycle is the measurement of one cycle of the loop.
type cycle struct {
	whole    time.Duration
	overhead time.Duration // whole, minus model, tools and the building of the request
}

// measure computes the times of a cycle from its records, oldest first: from the
// RepairTrigger that started it to the step that ended it. ok is false for an unusual
// turn, whose model time is not recorded (no model answered, a model was given up,
// another worker took over), for a cycle that waited for a summary, and for a turn with
// custom programs, whose time is not recorded either.
func measure(records []*harnessv1.Record) (c cycle, ok bool) {
	if len(records) == 0 {
		return cycle{}, false
	}
	var elsewhere time.Duration
	var tools []span
	for i, r := range records {
		j := r.GetJournal()
		switch {
		case i > 0 && (fromCustomExecutor(r.GetStep()) || waitsForCustomPrograms(r)): // the first record belongs to the cycle before
			return cycle{}, false
		case waitsForSummary(r.GetStep()):
			return cycle{}, false
		case j.GetTurnStarted().GetAttempt() > 1, j.GetModelRetried().GetLast(), j.GetExecutorFailed() != nil, j.GetStepTaken() != nil:
			return cycle{}, false
		case j.GetModelResponded() != nil:
			ok = true
			elsewhere += j.GetModelResponded().GetLatency().AsDuration() + j.GetModelResponded().GetPreparation().AsDuration()
		case j.GetToolFinished() != nil:
			end := r.GetCommitTime().AsTime()
			tools = append(tools, span{end.Add(-j.GetToolFinished().GetDuration().AsDuration()), end})
		}
	}
	c.whole = records[len(records)-1].GetCommitTime().AsTime().Sub(records[0].GetCommitTime().AsTime())
	c.overhead = max(c.whole-elsewhere-covered(tools), 0)
	return c, ok
}

// waitsForSummary reports whether compaction has stored that the run waits for a summary: it
// sends the step to itself.
func waitsForSummary(step *harnessv1.Step) bool {
	return step.GetFrom() == workflow.Compaction && step.GetTo() == workflow.Compaction
}

// fromCustomExecutor reports whether a step comes from a custom executor.
func fromCustomExecutor(step *harnessv1.Step) bool {
	return step != nil && !slices.Contains(workflow.Default(), step.GetFrom())
}

// contextKey is the key prefix of observations of context providers.
const contextKey = "context:"

// waitsForCustomPrograms reports whether the record waited for hooks, checks or context providers.
func waitsForCustomPrograms(r *harnessv1.Record) bool {
	return r.GetJournal().GetTurnAdmitted() != nil || r.GetJournal().GetCallsJudged() != nil ||
		slices.ContainsFunc(r.GetEvents(), func(e *harnessv1.Event) bool {
			return e.GetHookResult() != nil || e.GetHookError() != nil
		}) ||
		slices.ContainsFunc(r.GetStep().GetObserved(), func(o *harnessv1.Observation) bool {
			return o.GetHook() != nil || o.GetCheck() != nil || strings.HasPrefix(o.GetKey(), contextKey)
		})
}

type span struct{ from, to time.Time }

// covered returns the time in at least one of the spans: calls run in parallel.
func covered(spans []span) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from.UnixNano(), b.from.UnixNano()) })
	var until time.Time
	for _, s := range spans {
		if s.from.Before(until) {
			s.from = until
		}
		if s.to.After(s.from) {
			sum += s.to.Sub(s.from)
			until = s.to
		}
	}
	return sum
}

const (
	// samplesPerSecond bounds the samples, of which sampleBurst may follow each other:
	// reading a cycle back costs a read for each record of another process. A mesh with
	// little work is measured completely.
	samplesPerSecond = 5
	sampleBurst      = 10
	// sampleTime bounds the reading of one sample.
	sampleTime = 2 * time.Second
	// sampleRecords bounds the records of one sample; a cycle has about 10.
	sampleRecords = 200
)

// cycles measures cycles of the loop in the background, one at a time.
type cycles struct {
	log     runlog.Reader
	m       *Metrics
	ends    chan runlog.Entry
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	left float64 // samples available at the time last
	last time.Time
}

func startCycles(log runlog.Reader, m *Metrics) *cycles {
	ctx, stop := context.WithCancel(context.Background())
	s := &cycles{log: log, m: m, ends: make(chan runlog.Entry, sampleBurst), stop: stop, left: sampleBurst}
	s.running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-s.ends:
				s.sample(ctx, e)
			}
		}
	})
	return s
}

func (s *cycles) close() {
	s.stop()
	s.running.Wait()
}

// sampleEnd queues the cycle that ended with e, unless there were too many recently.
func (s *cycles) sampleEnd(e runlog.Entry, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = min(s.left+samplesPerSecond*max(now.Sub(s.last), 0).Seconds(), sampleBurst)
	if s.last = now; s.left < 1 {
		return
	}
	select {
	case s.ends <- e:
		s.left--
	default:
	}
}

// sample reads a cycle back. A cycle that cannot be read is not measured.
func (s *cycles) sample(ctx context.Context, end runlog.Entry) {
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	records := []*harnessv1.Record{end.Record}
	for before := end.Record.GetPrevSequence(); before > 0 && len(records) < sampleRecords; {
		e, err := s.log.Read(ctx, end.Run, before)
		if err != nil || e.Record == nil {
			return
		}
		records = append(records, e.Record)
		if e.Record.GetStep().GetRepairTrigger() != nil {
			break
		}
		before = e.Record.GetPrevSequence()
	}
	slices.Reverse(records)
	if records[0].GetStep().GetRepairTrigger() == nil {
		return
	}
	if c, ok := measure(records); ok {
		s.m.turnDuration.record(ctx, c.whole.Seconds())
		s.m.turnOverhead.record(ctx, c.overhead.Seconds())
	}
}
