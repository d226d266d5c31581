package simulation

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// ofCompaction decorates the logs of the compaction workers.
func ofCompaction(f func(log runlog.Log) runlog.Log) decorate {
	return func(role string, _ *sim.Process, log runlog.Log) runlog.Log {
		if role != workflow.Compaction {
			return log
		}
		return f(log)
	}
}

// rewriting decorates the logs of the compaction workers so that their steps are changed.
func rewriting(rewrite func(*harnessv1.Step)) decorate {
	return ofCompaction(func(log runlog.Log) runlog.Log {
		return &rewritingLog{Log: log, rewrite: func(rec *harnessv1.Record) { rewrite(rec.GetStep()) }}
	})
}

// summaryMutations are faults in what happens to the jobs of summaries.
var summaryMutations = []mutation{
	{name: "result-of-another-span", summaries: true, invariant: "a summary is that of its span", log: ofCompaction(func(log runlog.Log) runlog.Log {
		return &confusedLog{Log: log, results: map[runlog.Run][]byte{}}
	})},
	{name: "second-result-wins", summaries: true, invariant: "the first result of a job counts", log: func(role string, _ *sim.Process, log runlog.Log) runlog.Log {
		if role != workflow.Inference {
			return log
		}
		return sim.OverwriteBlobs(log)
	}},
	{name: "job-never-created", summaries: true, invariant: "a job is not forgotten", log: ofCompaction(func(log runlog.Log) runlog.Log { return uncreatedLog{log} })},
	{name: "job-dropped", from: 33, summaries: true, invariant: "a job is not forgotten", log: rewriting(dropJobs)},
	{name: "job-not-awaited", summaries: true, invariant: "a full window waits for its summary", log: rewriting(awaitNothing)},
	{name: "usage-counted-twice", summaries: true, invariant: "the usage of a job counts once", log: rewriting(countAgain)},
	{name: "ended-job-kept", summaries: true, invariant: "the usage of a job counts once", log: rewriting(keepEnded())},
}

// confusedLog returns the former result of a run instead of a newer one.
type confusedLog struct {
	runlog.Log

	mu      sync.Mutex
	results map[runlog.Run][]byte // the first one that was read
}

func (l *confusedLog) BlobAs(ctx context.Context, run runlog.Run, key string) ([]byte, error) {
	data, err := l.Log.BlobAs(ctx, run, key)
	if err != nil || data == nil {
		return data, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.results[run] == nil {
		l.results[run] = data
	}
	return l.results[run], nil
}

// uncreatedLog creates no jobs.
type uncreatedLog struct{ runlog.Log }

func (uncreatedLog) CreateJob(context.Context, *harnessv1.Job) (bool, error) { return true, nil }

// dropJobs removes the jobs of former turns from the plan.
func dropJobs(step *harnessv1.Step) {
	plan := step.GetSnapshot().GetCompactionPlan()
	jobs := plan.GetJobs()
	if len(jobs) == 0 {
		return
	}
	plan.Jobs = nil
	for _, job := range jobs {
		if job.GetTurn() == step.GetSnapshot().GetTurnCount() {
			plan.Jobs = append(plan.Jobs, job)
		}
	}
}

// awaitNothing lets a turn follow instead of the wait for a summary.
func awaitNothing(step *harnessv1.Step) {
	if step.GetTo() == workflow.Compaction {
		step.To = workflow.Turn
		step.Message = &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{Repair: step.GetRepairComplete()}}
	}
}

// countAgain counts the usage of each job a second time when its end is seen.
func countAgain(step *harnessv1.Step) {
	for _, o := range step.GetObserved() {
		if o.GetSummary().GetEnded() {
			runstate.AddTokens(step.GetSnapshot(), o.GetSummary().GetUsage())
		}
	}
}

// keepEnded keeps each job in the plan for one step after its end, so that it ends twice.
func keepEnded() func(*harnessv1.Step) {
	var mu sync.Mutex
	known, kept := map[string]*harnessv1.SummaryJob{}, map[string]bool{}
	return func(step *harnessv1.Step) {
		mu.Lock()
		defer mu.Unlock()
		plan := step.GetSnapshot().GetCompactionPlan()
		for _, job := range plan.GetJobs() {
			known[job.GetKey()] = job
		}
		for key, job := range known {
			if observedEnd(step, key) && !kept[key] {
				kept[key] = true
				again := proto.CloneOf(job)
				again.Abandoned = true
				plan.Jobs = append(plan.Jobs, again)
			}
		}
	}
}

// observedEnd reports whether the decision of a step has seen the end of a job.
func observedEnd(step *harnessv1.Step, key string) bool {
	for _, o := range step.GetObserved() {
		if o.GetKey() == "summary:"+key && o.GetSummary().GetEnded() {
			return true
		}
	}
	return false
}
