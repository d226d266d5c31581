package compaction

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Numbers of summaries.
const (
	leastSpanMessages = 3    // of a span
	leastSpanTokens   = 500  // of a span
	spanShare         = 0.60 // of the window that a span holds at most; longer ones are taken in parts
	retryTurns        = 3    // after the first failure before another request, below blocking pressure
	maxRetryTurns     = 24   // after later failures: each time twice as many, up to these
	urgentAttempts    = 3    // requests that may fail in a turn that cannot continue without a summary
	maxJobs           = 4    // of which the usage is still to be counted
)

// keyLength is the length of the key of a job in hexadecimal digits.
const keyLength = 32

// Key returns the key of the job for a span: the run's first sequence, the span, the summary
// that the result is merged into, the summarizer, and the number of the attempt in a segment.
// Messages never change, so their ids identify the span.
func Key(firstSequence, first, through uint64, former, summarizer string, segment, attempt uint32) string {
	text := fmt.Appendf(nil, "%d/%d/%d/%s/%d/%s", firstSequence, first, through, former, attempt, summarizer)
	if segment > 1 {
		text = fmt.Appendf(text, "/%d", segment)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:keyLength]
}

// requestKey returns the key of the observation that a job was created.
func requestKey(job *harnessv1.SummaryJob) string {
	return fmt.Sprintf("%s%s:%d:%d:%d", KeyRequest, job.GetKey(), job.GetFirstMessage(), job.GetThroughMessage(), job.GetAttempt())
}

// ParseRequest returns the job that a key of requestKey names.
func ParseRequest(key string) (*harnessv1.SummaryJob, error) {
	job := &harnessv1.SummaryJob{}
	fields := strings.Split(strings.TrimPrefix(key, KeyRequest), ":")
	if len(fields) != 4 || !strings.HasPrefix(key, KeyRequest) {
		return nil, fmt.Errorf("compaction: %q is no request for a summary", key)
	}
	job.Key = fields[0]
	_, err := fmt.Sscanf(strings.Join(fields[1:], " "), "%d %d %d", &job.FirstMessage, &job.ThroughMessage, &job.Attempt)
	return job, err
}

// Summarizer returns the model that makes the summaries of a run.
func Summarizer(s runstate.DefinitionFields) string {
	if m := s.GetConfig().GetContext().GetSummarizer().GetModel(); m != "" {
		return m
	}
	return s.GetModel()
}

// readJobs reads how far the requested summaries are. What one used counts once: when its
// end is seen.
func (d *decision) readJobs() error {
	plan := d.s.GetCompactionPlan()
	if len(plan.GetJobs()) == 0 {
		return nil
	}
	var unknown []string
	for _, job := range plan.GetJobs() {
		if d.observed(KeySummary+job.GetKey()) == nil {
			unknown = append(unknown, KeySummary+job.GetKey())
		}
	}
	if len(unknown) > 0 {
		return needs(unknown...)
	}
	plan = proto.CloneOf(plan)
	jobs := plan.GetJobs()
	plan.Jobs = nil
	for _, job := range jobs {
		state := d.observed(KeySummary + job.GetKey()).GetSummary()
		if !state.GetEnded() {
			plan.Jobs = append(plan.Jobs, job)
			continue
		}
		runstate.AddTokens(d.s, state.GetUsage())
		switch {
		case job.GetAbandoned():
		case state.GetSummary() == nil:
			d.fail(plan, job, state.GetError())
		case state.GetSummary().GetFormer() == plan.GetSummary().GetKey():
			plan.Ready = state.GetSummary() // a failure before it counts until it is applied
			if plan.GetFailed() != nil {
				plan.Failed.Abandoned = false
			}
		}
	}
	d.s.CompactionPlan = plan
	return nil
}

// fail records that a job gave no summary. If the run has waited for it, or for one before it, it waits for
// none until one is there.
func (d *decision) fail(plan *harnessv1.CompactionPlan, job *harnessv1.SummaryJob, why string) {
	plan.Failed = &harnessv1.SummaryJob{
		Key: job.GetKey(), FirstMessage: job.GetFirstMessage(), ThroughMessage: job.GetThroughMessage(), Turn: d.s.GetTurnCount(), Attempt: job.GetAttempt(),
		Abandoned: job.GetWaitingSince() != nil || plan.GetFailed().GetAbandoned(),
	}
	d.problem = why
}

// activeJob returns the job whose summary is to be shown; nil if there is none.
func activeJob(plan *harnessv1.CompactionPlan) *harnessv1.SummaryJob {
	for _, job := range plan.GetJobs() {
		if !job.GetAbandoned() {
			return job
		}
	}
	return nil
}

// span returns the messages that a summary can replace: all between the last summary and the
// recent part, without a call whose result is not among them, up to a share of the window. ok
// is false if they are too few.
func (p *pass) span(window uint32) (first, through uint64, ok bool) {
	first = p.plan.GetSummary().GetThroughMessage() + 1
	if first == 1 { // the system prompt and the goal are shown
		for goal := p.x.Goal(); first < p.recent && (first == goal || p.x.Entry(first).Role == harnessv1.Role_ROLE_SYSTEM); {
			first++
		}
	}
	room, whole := uint64(spanShare*float64(window)/p.factor), view.NewRules(withTexts(p.plan), p.x)
	var tokens, inView uint64
	messages := 0
	open := uint64(0) // the last result of the calls so far
	for id := first; id < p.recent; id++ {
		e := p.x.Entry(id)
		for _, result := range e.Results {
			if result == 0 {
				result = p.recent
			}
			open = max(open, result)
		}
		if tokens += uint64(e.Tokens); tokens > room && ok { // a span that is worth a summary may be longer
			break
		}
		if replaced := e.ReplacedBy != 0 && e.ReplacedBy < p.recent; (!e.Kept || replaced) && !e.IsUser() {
			messages++
			inView += uint64(whole.Shown(e))
		}
		if open <= id {
			through, ok = id, messages >= leastSpanMessages && inView >= leastSpanTokens
		}
	}
	return first, through, ok
}

// newJob returns the job for the span of a pass; nil if there is no span worth a summary, or
// one has failed not long ago.
func (d *decision) newJob(p *pass) *harnessv1.SummaryJob {
	attempt := uint32(1)
	if failed := p.plan.GetFailed(); failed != nil {
		attempt = failed.GetAttempt() + 1
		if d.s.GetTurnCount() < failed.GetTurn()+d.distance(failed.GetAttempt()) {
			return nil
		}
	}
	first, through, ok := p.span(d.b.GetMaxInputTokens())
	if !ok || runstate.ExceededBudget(d.s, d.in.GetNow().AsTime()) != nil {
		return nil
	}
	return &harnessv1.SummaryJob{
		Key:          Key(d.s.GetFirstSequence(), first, through, p.plan.GetSummary().GetKey(), Summarizer(d.s), d.s.GetSegment(), attempt),
		FirstMessage: first, ThroughMessage: through, Turn: d.s.GetTurnCount(), Attempt: attempt,
	}
}

// distance returns the turns between a failed attempt and the next one.
func (d *decision) distance(attempt uint32) uint32 {
	switch {
	case d.urgent && attempt < urgentAttempts:
		return 0
	case d.level == blocking:
		return 1
	}
	turns := uint32(retryTurns)
	for ; attempt > 1 && turns < maxRetryTurns; attempt-- {
		turns *= 2
	}
	return turns
}

// retries reports whether a summary that was tried is requested again in a later turn.
func (d *decision) retries(p *pass) bool {
	return d.has(summarize) && p.plan.GetFailed().GetAttempt() > 0
}

// request returns the job whose summary makes room: the one that was requested before, or a
// new one, which is then created. It returns nil if there is none.
func (d *decision) request(p *pass) (job *harnessv1.SummaryJob, fresh bool, err error) {
	if job = activeJob(p.plan); job != nil || !d.has(summarize) {
		return job, false, nil
	}
	if job = d.newJob(p); job == nil {
		return nil, false, nil
	}
	o := d.observed(KeyInference)
	switch {
	case o == nil:
		return nil, false, needs(KeyInference)
	case !o.GetInferenceAvailable():
		p.plan = proto.CloneOf(p.plan)
		job.Attempt-- // it was not tried
		d.fail(p.plan, job, "no worker makes summaries: start one with harness serve --roles inference")
		return nil, false, nil
	}
	created := d.observed(requestKey(job)).GetSummaryRequested()
	switch {
	case created == nil:
		return nil, false, needs(requestKey(job))
	case created.GetError() != "":
		p.plan = proto.CloneOf(p.plan)
		d.fail(p.plan, job, created.GetError())
		return nil, false, nil
	}
	p.plan = proto.CloneOf(p.plan)
	if n := len(p.plan.Jobs); n >= maxJobs { // all are abandoned; the oldest will hardly end
		p.plan.Jobs = p.plan.Jobs[n-maxJobs+1:]
	}
	p.plan.Jobs = append(p.plan.Jobs, job)
	return job, true, nil
}

// await makes the run wait for a job. It reports false if the time for it is over; the job
// is then abandoned.
func (d *decision) await(p *pass, job *harnessv1.SummaryJob) (waits bool, err error) {
	now := d.in.GetNow().AsTime()
	if job.GetWaitingSince() == nil { // stored first, so that a worker's death does not start the time again
		p.plan = withWait(p.plan, job.GetKey(), now)
		d.s.CompactionPlan = p.plan
		d.Step.To, d.Step.Message = Name, &harnessv1.Step_RepairComplete{RepairComplete: d.repaired}
		d.emitStarted(job, false)
		return true, nil
	}
	until := job.GetWaitingSince().AsTime().Add(d.cfg.GetSummaryWait().AsDuration())
	if !now.Before(until) {
		p.plan = abandoned(p.plan, job.GetKey())
		d.s.CompactionPlan = abandoned(d.s.GetCompactionPlan(), job.GetKey())
		d.problem = fmt.Sprintf("the summary was not there after %s", d.cfg.GetSummaryWait().AsDuration().Round(time.Second))
		return false, nil
	}
	o := d.observed(KeyArrived)
	deadline, limited := runstate.WallClockDeadline(d.s)
	switch {
	case o == nil:
		return false, needs(KeyArrived)
	case o.GetInboxWaiting(), limited && !now.Before(deadline): // repair takes it, or parks the run; the wait continues after that
		d.s.CompactionPlan = p.plan
		d.Step.To = workflow.StopDecision
		d.Step.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: d.s.GetTurnCount() + 1, Interrupted: true}}
		return true, nil
	}
	if limited && deadline.Before(until) {
		until = deadline
	}
	return false, &waitError{&harnessv1.Wait{Keys: []string{KeySummary + job.GetKey()}, Until: timestamppb.New(until)}}
}

// withWait returns a plan in which the run waits for a job.
func withWait(plan *harnessv1.CompactionPlan, key string, now time.Time) *harnessv1.CompactionPlan {
	next := proto.CloneOf(plan)
	for _, job := range next.GetJobs() {
		if job.GetKey() == key {
			job.WaitingSince = timestamppb.New(now)
		}
	}
	return next
}

// withoutWait returns a plan in which the run waits for no job, so that a later wait has its whole time.
func withoutWait(plan *harnessv1.CompactionPlan) *harnessv1.CompactionPlan {
	job := activeJob(plan)
	if job.GetWaitingSince() == nil {
		return plan
	}
	next := proto.CloneOf(plan)
	activeJob(next).WaitingSince = nil
	return next
}

// abandoned returns a plan in which nothing waits for a job any more: only its usage counts.
func abandoned(plan *harnessv1.CompactionPlan, key string) *harnessv1.CompactionPlan {
	next := proto.CloneOf(plan)
	for _, job := range next.GetJobs() {
		if job.GetKey() == key {
			job.Abandoned = true
			next.Failed = proto.CloneOf(job)
		}
	}
	return next
}

// emitStarted reports that a pass begins, or that a summary was requested.
func (d *decision) emitStarted(job *harnessv1.SummaryJob, background bool) {
	used := uint64(d.b.GetUsedTokens())
	d.Emit(event.CompactionStarted(&harnessv1.CompactionStarted{
		Level: levelName(d.level), TokensBefore: d.b.GetUsedTokens(), TokensToFree: clamp(used - min(used, d.target())), Background: background, Job: job.GetKey(),
	}))
}
