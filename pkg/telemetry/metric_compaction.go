package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/metric"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// shares are upper bounds of parts of a window.
var shares = []float64{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.1}

// The instruments of contexts and their compaction.
var (
	contextShare = instrument{Name: "harness.context.share", Kind: Histogram, Unit: "{share}", Buckets: shares,
		Description: "How full the window is before a turn, after compaction: 1 is full.", Attributes: nil}
	compactionPasses = instrument{Name: "harness.compaction.passes", Kind: Counter, Unit: "{pass}",
		Description: "Passes of compaction by the strategies that freed something; a pass counts once for each. level: soft or blocking.", Attributes: []string{"strategy", "level"}}
	compactionFreed = instrument{Name: "harness.compaction.freed_tokens", Kind: Counter, Unit: "{token}",
		Description: "Tokens that passes have freed, by what was done to the messages.", Attributes: []string{"action"}}
	compactionDuration = instrument{Name: "harness.compaction.duration", Kind: Histogram, Unit: "s", Buckets: long,
		Description: "Time of a pass: reading the conversation, counting, and waiting for a summary.", Attributes: []string{"level"}}
	compactionWaits = instrument{Name: "harness.compaction.waits", Kind: Counter, Unit: "{wait}",
		Description: "Runs that began to wait for a summary because their window was full.", Attributes: nil}
	compactionSummaries = instrument{Name: "harness.compaction.summaries", Kind: Counter, Unit: "{summary}",
		Description: "Ends of requested summaries. outcome: ready or failed.", Attributes: []string{"outcome"}}
)

// compactionMetrics measure contexts and their compaction.
type compactionMetrics struct {
	share, duration                 histogram
	passes, freed, waits, summaries counter
}

// create creates the instruments.
func (c *compactionMetrics) create(meter metric.Meter) (errs []error) {
	for _, h := range []struct {
		of instrument
		to *histogram
	}{{contextShare, &c.share}, {compactionDuration, &c.duration}} {
		errs = append(errs, h.to.create(meter, h.of))
	}
	for _, n := range []struct {
		of instrument
		to *counter
	}{{compactionPasses, &c.passes}, {compactionFreed, &c.freed}, {compactionWaits, &c.waits}, {compactionSummaries, &c.summaries}} {
		errs = append(errs, n.to.create(meter, n.of))
	}
	return errs
}

// serves exposes the rare counters as 0.
func (c *compactionMetrics) serves(ctx context.Context) {
	c.waits.add(ctx, 0)
	for _, outcome := range []string{"ready", "failed"} {
		c.summaries.add(ctx, 0, outcome)
	}
}

// stored counts what a step of compaction reports.
func (c *compactionMetrics) stored(ctx context.Context, rec *harnessv1.Record) {
	step := rec.GetStep()
	if step.GetFrom() != workflow.Compaction {
		return
	}
	for _, o := range step.GetObserved() {
		switch s := o.GetSummary(); {
		case !s.GetEnded():
		case s.GetSummary() != nil:
			c.summaries.add(ctx, 1, "ready")
		default:
			c.summaries.add(ctx, 1, "failed")
		}
	}
	level := afterWait
	for _, e := range rec.GetEvents() {
		if started := e.GetCompactionStarted(); started != nil {
			level = started.GetLevel()
			if started.GetJob() != "" && !started.GetBackground() {
				c.waits.add(ctx, 1)
			}
		}
		if completed := e.GetCompactionCompleted(); completed != nil {
			c.completed(ctx, completed, level)
		}
	}
	b := step.GetSnapshot().GetTokenBudget()
	if step.GetCompactionComplete() != nil && b.GetMaxInputTokens() > 0 {
		c.share.record(ctx, float64(b.GetUsedTokens())/float64(b.GetMaxInputTokens()))
	}
}

// afterWait is the level of a pass that waited for its summary: the record that states the
// wait has its beginning.
const afterWait = "blocking"

// completed counts a pass.
func (c *compactionMetrics) completed(ctx context.Context, p *harnessv1.CompactionCompleted, level string) {
	for _, strategy := range p.GetStrategies() {
		c.passes.add(ctx, 1, strategy, level)
	}
	for _, change := range p.GetChanges() {
		c.freed.add(ctx, uint64(change.GetFreedTokens()), strings.ToLower(strings.TrimPrefix(change.GetAction().String(), "COMPACTION_ACTION_")))
	}
	if len(p.GetStrategies()) > 0 { // else only a summary has failed
		c.duration.record(ctx, p.GetDuration().AsDuration().Seconds(), level)
	}
}
