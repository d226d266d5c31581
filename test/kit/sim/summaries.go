package sim

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// summaryInvariants returns what holds for the summaries of a run. They need the simulated
// model as summarizer.
func summaryInvariants() []Invariant {
	return []Invariant{
		{Name: "a job is not forgotten", Stored: jobsRemembered},
		{Name: "a full window waits for its summary", Stored: jobsAwaited},
		{Name: "the usage of a job counts once", Stored: jobsCounted},
		{Name: "a summary is that of its span", Stored: summaryOfSpan},
		{Name: "the first result of a job counts", Stored: firstResult},
	}
}

func planOfStep(e runlog.Entry) *harnessv1.CompactionPlan {
	return e.Record.GetStep().GetSnapshot().GetCompactionPlan()
}

func compacted(e runlog.Entry) bool { return e.Record.GetStep().GetFrom() == workflow.Compaction }

// ended returns the ends of jobs that the decision of a step has seen, by key.
func ended(e runlog.Entry) map[string]*harnessv1.SummaryState {
	all := map[string]*harnessv1.SummaryState{}
	for _, o := range e.Record.GetStep().GetObserved() {
		if s := o.GetSummary(); s.GetEnded() {
			_, key, _ := strings.Cut(o.GetKey(), ":")
			all[key] = s
		}
	}
	return all
}

func jobWith(plan *harnessv1.CompactionPlan, key string) *harnessv1.SummaryJob {
	for _, job := range plan.GetJobs() {
		if job.GetKey() == key {
			return job
		}
	}
	return nil
}

// jobsRemembered: a job of a plan exists, and is in each plan until its end is seen.
func jobsRemembered(l *Log, e runlog.Entry) string {
	if e.Record.GetStep() == nil || e.Record.GetStep().GetSnapshot().GetExpireTime() != nil {
		return ""
	}
	before, plan := planOfStep(l.state.step), planOfStep(e)
	for _, job := range plan.GetJobs() {
		if jobWith(before, job.GetKey()) == nil && l.jobs[job.GetKey()] == nil {
			return fmt.Sprintf("job %s for the messages %d to %d does not exist", job.GetKey(), job.GetFirstMessage(), job.GetThroughMessage())
		}
	}
	for _, job := range before.GetJobs() {
		if jobWith(plan, job.GetKey()) == nil && ended(e)[job.GetKey()] == nil {
			return fmt.Sprintf("job %s is not in the plan, and its end was not seen", job.GetKey())
		}
	}
	return ""
}

// jobsAwaited: no turn follows at blocking pressure while a summary is being made.
func jobsAwaited(_ *Log, e runlog.Entry) string {
	b := e.Record.GetStep().GetSnapshot().GetTokenBudget()
	if !compacted(e) || e.Record.GetStep().GetTo() != workflow.Turn || b.GetUsedTokens() < b.GetBlockingTokens() ||
		planOfStep(e).GetFailed().GetAbandoned() { // it has waited in vain
		return ""
	}
	for _, job := range planOfStep(e).GetJobs() {
		if !job.GetAbandoned() {
			return fmt.Sprintf("a turn with %d of %d tokens follows while job %s is pending", b.GetUsedTokens(), b.GetMaxInputTokens(), job.GetKey())
		}
	}
	return ""
}

// jobsCounted: the steps of compaction add the usage of jobs whose end is seen for the first
// time, and nothing else.
func jobsCounted(l *Log, e runlog.Entry) string {
	if !compacted(e) {
		return ""
	}
	if l.state.counted == nil {
		l.state.counted = map[string]bool{}
	}
	before, after := l.state.step.Record.GetStep().GetSnapshot().GetSpent().GetUsage(), e.Record.GetStep().GetSnapshot().GetSpent().GetUsage()
	want := before.GetOutputTokens()
	for key, state := range ended(e) {
		if !l.state.counted[key] {
			want += state.GetUsage().GetOutputTokens()
		}
		l.state.counted[key] = true
	}
	if after.GetOutputTokens() != want {
		return fmt.Sprintf("%d tokens of output are counted after a step of compaction, want %d", after.GetOutputTokens(), want)
	}
	return ""
}

// applied returns the summary that a step shows first and the request for it; nil without
// one.
func applied(l *Log, e runlog.Entry) (s *harnessv1.StructuredSummary, job *harnessv1.SummaryJob, wrong string) {
	ref := planOfStep(e).GetSummary()
	if l.state.spans == nil {
		l.state.spans = map[string]*harnessv1.SummaryJob{}
	}
	for _, job := range planOfStep(e).GetJobs() {
		l.state.spans[job.GetKey()] = job
	}
	if ref == nil || e.Record.GetStep().GetSnapshot().GetExpireTime() != nil || ref.GetKey() == planOfStep(l.state.step).GetSummary().GetKey() {
		return nil, nil, ""
	}
	if job = l.state.spans[ref.GetKey()]; job == nil {
		return nil, nil, fmt.Sprintf("summary %s was not requested", ref.GetKey())
	}
	s, err := summary.Decode(l.blobs[ref.GetSummary().GetDigest()])
	if err != nil {
		return nil, nil, err.Error()
	}
	return s, job, ""
}

// summaryOfSpan: a summary that is shown names the span for which it was requested.
func summaryOfSpan(l *Log, e runlog.Entry) string {
	s, job, wrong := applied(l, e)
	if s == nil {
		return wrong
	}
	first, last := job.GetFirstMessage(), job.GetThroughMessage()
	for _, fact := range s.GetFacts() {
		if strings.HasPrefix(fact.GetText(), spanFact(first, last)) && s.GetThroughMessage() == last {
			return ""
		}
	}
	return fmt.Sprintf("the summary for the messages %d to %d is %v", first, last, s)
}

// firstResult: a summary that is shown was made of the result that was stored first.
func firstResult(l *Log, e runlog.Entry) string {
	s, job, wrong := applied(l, e)
	if s == nil {
		return wrong
	}
	result := &harnessv1.JobResult{}
	if err := proto.Unmarshal(l.first[job.GetKey()].data, result); err != nil {
		return err.Error()
	}
	facts := s.GetFacts()
	if len(facts) == 0 || !strings.Contains(result.GetText(), facts[len(facts)-1].GetText()) {
		return fmt.Sprintf("the first result of job %s is %q, and the summary is %v", job.GetKey(), result.GetText(), s)
	}
	return ""
}
