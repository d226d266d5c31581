package simulation

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// delegate gives a run sub-agents. Half have a budget, some work on a graph of tasks first.
func delegate(name string, spec *harnessv1.RunSpec, random *rand.Rand) {
	spec.Goal, spec.Config.Budgets = content.Inline(sim.Goal(name, 2+random.IntN(3))), nil
	spec.Agent.Agents = sim.Agents()
	if random.IntN(2) == 0 {
		spec.Config.Budgets = &harnessv1.Budgets{Tokens: proto.Uint64(uint64(50_000 + random.IntN(60_000)))}
	}
	if random.IntN(3) == 0 {
		spec.Agent.Agents[random.IntN(2)].Deadline = durationpb.New(time.Duration(5+random.IntN(60)) * time.Second)
	}
	if random.IntN(5) == 0 {
		spec.Graph = sim.Graph(name, "g")
	}
}

// lateStartLog sends the start of some children a second time, up to two minutes later, as a worker does that
// hung meanwhile.
type lateStartLog struct {
	runlog.Log
	ctx context.Context

	mu     sync.Mutex
	random *rand.Rand
}

func (l *lateStartLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	if rec.GetVersion() != 1 || rec.GetStep().GetRepairTrigger().GetParent() == nil {
		return l.Log.Append(ctx, rec)
	}
	l.mu.Lock()
	again, pause := l.random.IntN(3) > 0, time.Duration(l.random.IntN(120_000))*time.Millisecond
	l.mu.Unlock()
	if again {
		late := proto.CloneOf(rec)
		late.Writer.Nonce++
		time.AfterFunc(pause, func() { _, _ = l.Log.Append(l.ctx, late) })
	}
	return l.Log.Append(ctx, rec)
}
