package compaction

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// makeRoom makes a pass. At soft pressure it is given up if it is not worth breaking the
// prefix of the provider's cache. If the window is over its limit after it, it is made
// again, with a summary that was to be requested in a later turn.
func (d *decision) makeRoom() error {
	if err := d.needIndex(); err != nil {
		return err
	}
	if d.b.GetExceeded() { // the estimate was too low: the window is full
		d.b.UsedTokens = max(d.b.GetUsedTokens(), d.b.GetMaxInputTokens())
	}
	p := d.newPass()
	before := p.used
	d.clear(p)
	d.externalize(p)
	p.clearRecentMedia()
	if p.used > d.target() {
		d.applyReady(p)
	}
	var job *harnessv1.SummaryJob
	var requested bool
	if d.isShort(p, before) {
		var err error
		if job, requested, err = d.request(p); err != nil {
			return err
		}
	}
	late := job != nil && d.full(p)
	if vain := p.plan.GetFailed().GetAbandoned(); late && (!vain || d.urgent || job.GetWaitingSince() != nil) {
		waits, err := d.await(p, job)
		if waits || err != nil {
			return err
		}
	}
	p.plan = withoutWait(p.plan)
	if job == nil || late {
		last := *p
		d.drop(&last)
		d.lastResort(&last)
		if last.used > uint64(d.b.GetMaxInputTokens()) && !d.urgent {
			d.urgent = true
			return d.makeRoom()
		}
		p = &last
	}
	return d.commit(p, job, requested)
}

// isShort reports whether a pass has freed so much less than it is to that another strategy is worth it.
// before are the tokens before it.
func (d *decision) isShort(p *pass, before uint64) bool {
	if p.used <= d.target() {
		return false
	}
	return float64(p.used-d.target()) > shortShare*float64(before-min(before, d.target()))
}

// full reports whether a request under the plan of a pass would still be at blocking
// pressure.
func (d *decision) full(p *pass) bool { return p.used >= uint64(d.b.GetBlockingTokens()) }

// applyReady shows the summary that is ready.
func (d *decision) applyReady(p *pass) {
	ready := p.plan.GetReady()
	if ready == nil {
		return
	}
	plan := proto.CloneOf(p.plan)
	plan.Ready = nil
	p.plan = plan
	switch {
	case ready.GetFormer() != plan.GetSummary().GetKey():
	case p.apply(ready):
		p.plan.Failed = nil // the plan of the pass is another one now
	default:
		job := &harnessv1.SummaryJob{Key: ready.GetKey(), ThroughMessage: ready.GetThroughMessage(), Attempt: plan.GetFailed().GetAttempt() + 1}
		d.fail(plan, job, "the summary is longer than what it replaces")
	}
}

// lastResort clears results directly, those of the recent part included, leaves out the agent's own older
// texts, then shortens the rest of the results, and shows only the beginning of long messages of the user.
// At last nothing but the last turn is left of what may be left out.
func (d *decision) lastResort(p *pass) {
	// At soft pressure the next turn would do it, in another pass.
	if d.full(p) || p.used >= uint64(d.b.GetSoftTokens()) && !d.retries(p) {
		p.directClear()
	}
	target := max(d.target(), uint64(d.b.GetSoftTokens())-1)
	if d.full(p) {
		d.dropTexts(p, p.recent-1, target)
	}
	if d.full(p) {
		p.shortenResults(target)
		p.step(strategy{"externalize", externalize, []harnessv1.MessageClass{user}, longUserTokens}, uint64(len(p.x.Entries)), target)
	}
	if d.full(p) {
		d.dropResults(p, sentThrough(p.x), target)
		d.dropTexts(p, sentThrough(p.x), target)
	}
	if d.full(p) {
		d.dropClass(p, spanClass, sentThrough(p.x), target)
	}
}

// commit makes the plan of a pass that of the run, or fails the turn if nothing is left to
// free.
func (d *decision) commit(p *pass, job *harnessv1.SummaryJob, requested bool) error {
	if d.level == soft && !d.worth(p) {
		p = d.given(p)
	}
	limit := uint64(d.b.GetMaxInputTokens())
	if p.used > limit && !p.unweighed || d.b.GetExceeded() && len(p.changes) == 0 && p.used >= limit {
		d.exhaust(p)
		return nil
	}
	if requested {
		d.emitStarted(job, true)
	}
	if len(p.changes) == 0 {
		if d.s.GetCompactionPlan() != nil || !proto.Equal(p.plan, &harnessv1.CompactionPlan{Renderer: view.Renderer}) {
			d.s.CompactionPlan = p.plan
		}
		return nil
	}
	before := d.b.GetUsedTokens()
	p.plan = proto.CloneOf(p.plan)
	p.plan.Passes++
	p.plan.LastPassTurn = d.s.GetTurnCount()
	count(p.plan, p.x)
	d.s.CompactionPlan = p.plan
	if !requested && !d.waited() {
		d.emitStarted(nil, false)
	}
	d.changes = p.changes
	d.account(p)
	runstate.OwnActivity(d.s).Compactions++
	progress.Compacted(d.s.GetProgressTracker(), d.s.GetDoomLoop())
	d.Emit(event.CompactionCompleted(&harnessv1.CompactionCompleted{
		TokensBefore: before, TokensAfter: clamp(p.used), FreedTokens: before - min(before, clamp(p.used)), Duration: durationpb.New(d.took()),
		Strategies: p.names, Changes: p.changes, Error: d.problem, Pass: p.plan.GetPasses(),
	}))
	d.problem = ""
	return nil
}

// emitProblem reports why a summary could not be made or used, if no pass has done so.
func (d *decision) emitProblem() {
	if d.problem == "" {
		return
	}
	used := d.b.GetUsedTokens()
	d.Emit(event.CompactionCompleted(&harnessv1.CompactionCompleted{
		TokensBefore: used, TokensAfter: used, Error: d.problem, Pass: d.s.GetCompactionPlan().GetPasses(), Duration: durationpb.New(d.took()),
	}))
	d.problem = ""
}

// given returns a pass that changes nothing of the view, with the jobs of p.
func (d *decision) given(p *pass) *pass {
	same := d.newPass()
	if plan := d.s.GetCompactionPlan(); plan != nil || len(p.plan.GetJobs()) > 0 || p.plan.GetFailed() != nil {
		same.plan = proto.CloneOf(same.plan)
		same.plan.Jobs = p.plan.GetJobs()
		if failed := p.plan.GetFailed(); failed != nil { // else a summary was applied, which is given up too
			same.plan.Failed = failed
		}
		if p.plan.GetSummary().GetKey() == same.plan.GetSummary().GetKey() {
			same.plan.Ready = p.plan.GetReady()
		}
	}
	return same
}

// account sets the estimate under the plan of a pass. The messages of the last report now weigh less
// than it states.
func (d *decision) account(p *pass) {
	d.b.UsedTokens, d.b.Exceeded, d.b.MediaBytes = clamp(p.used), false, shownMedia(p.x, p.rules).InBytes()
	if d.b.GetReportedTokens() == 0 {
		return
	}
	var since uint64
	for i := d.b.GetReportedMessages(); i < uint64(len(p.x.Entries)); i++ {
		since += uint64(p.rules.Shown(&p.x.Entries[i]))
	}
	reported := uint64(d.b.GetReportedTokens()) + scale(since, p.factor)
	d.b.FreedTokens = clamp(reported - min(reported, p.used))
}

// waited reports whether the step before has stated that the run waits for a summary, and
// with that that a pass begins.
func (d *decision) waited() bool {
	return slices.ContainsFunc(d.in.GetStep().GetSnapshot().GetCompactionPlan().GetJobs(), func(job *harnessv1.SummaryJob) bool {
		return job.GetWaitingSince() != nil && !job.GetAbandoned()
	})
}

// took returns the time that the pass took: reading the conversation, and waiting.
func (d *decision) took() time.Duration {
	took := d.observed(KeyConversation).GetConversation().GetDuration().AsDuration()
	for _, job := range d.in.GetStep().GetSnapshot().GetCompactionPlan().GetJobs() {
		if job.GetWaitingSince() != nil && !job.GetAbandoned() {
			took += d.in.GetNow().AsTime().Sub(job.GetWaitingSince().AsTime())
		}
	}
	return took
}

// exhaust fails the turn: nothing is left to free.
func (d *decision) exhaust(p *pass) {
	if d.s.GetCompactionPlan() != nil || len(p.changes) > 0 {
		d.s.CompactionPlan = p.plan
	}
	if len(p.changes) > 0 {
		d.account(p)
	}
	d.Step.To = workflow.StopDecision
	d.Step.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
		TurnNumber: d.s.GetTurnCount() + 1,
		Error: &harnessv1.TurnError{
			Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED,
			Message: fmt.Sprintf("the window of %d tokens is full: the request needs about %d, of which %d are tools, and nothing is left to compact",
				d.b.GetMaxInputTokens(), p.used, d.b.GetToolTokens()),
		},
	}}
}
