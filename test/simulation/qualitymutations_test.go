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

// qualityMutations are faults in judging work.
var qualityMutations = []mutation{
	{name: "result-under-another-key", judged: true, invariant: "the answer of a judge is that to its request", log: crossedResults()},
	{name: "second-answer-wins", judged: true, invariant: "a judge has one answer for a key", log: ofRole(workflow.Inference, sim.OverwriteBlobs)},
	{name: "judging-counted-twice", judged: true, invariant: "what judging used counts once", log: ofRole(workflow.StopDecision, func(log runlog.Log) runlog.Log {
		return &rewritingLog{Log: log, rewrite: countJudgesAgain}
	})},
	{name: "count-without-revision", judged: true, from: 660, invariant: "a segment counts once in its profile", log: ofRole(workflow.StopDecision, sim.UnfencedValues)},
	{name: "last-attempt-delivered", judged: true, invariant: "the best attempt is delivered", log: lastDelivered()},
}

// crossedResults stores the first result of a run under the keys of all its jobs.
func crossedResults() decorate {
	shared := &crossings{results: map[runlog.Run][]byte{}}
	return ofRole(workflow.Inference, func(log runlog.Log) runlog.Log { return &crossedLog{Log: log, crossings: shared} })
}

// crossings are the first results that all processes have stored.
type crossings struct {
	mu      sync.Mutex
	results map[runlog.Run][]byte
}

type crossedLog struct {
	runlog.Log
	*crossings
}

func (l *crossedLog) PutBlobAs(ctx context.Context, run runlog.Run, first uint64, name string, data []byte) (bool, error) {
	l.mu.Lock()
	if l.results[run] == nil {
		l.results[run] = data
	}
	data = l.results[run]
	l.mu.Unlock()
	return l.Log.PutBlobAs(ctx, run, first, name, data)
}

// countJudgesAgain counts the usage of each job that judges a second time.
func countJudgesAgain(rec *harnessv1.Record) {
	for _, o := range rec.GetStep().GetObserved() {
		if o.GetJob().GetEnded() {
			runstate.AddTokens(rec.GetStep().GetSnapshot(), o.GetJob().GetUsage())
		}
	}
}

// lastDelivered delivers the answer of the newest turn, whichever attempt is the best.
func lastDelivered() decorate {
	var mu sync.Mutex
	answers := map[string]*harnessv1.Content{}
	rewrite := func(rec *harnessv1.Record) {
		mu.Lock()
		defer mu.Unlock()
		step := rec.GetStep()
		if step.GetFrom() == workflow.Turn {
			answers[rec.GetRunId()] = proto.CloneOf(step.GetSnapshot().GetAnswer())
		}
		if step.GetFrom() == workflow.StopDecision && step.GetResult().GetQuality() != nil {
			step.GetSnapshot().Answer, step.GetResult().Answer = answers[rec.GetRunId()], answers[rec.GetRunId()]
		}
	}
	return func(_ string, _ *sim.Process, log runlog.Log) runlog.Log {
		return &rewritingLog{Log: log, rewrite: rewrite}
	}
}
