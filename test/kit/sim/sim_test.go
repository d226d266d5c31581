package sim_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// counter is an executor that passes its run to itself until it has counted to ten.
// Before each step it pays, which must not happen twice for one number.
type counter struct {
	pay func(run runlog.Run, number uint32)
	// recorded makes it record in the journal what it is about to pay for.
	recorded bool
}

const last = 10

func (*counter) Name() string { return "count" }

func (c *counter) Execute(ctx context.Context, task *executor.Task) (*harnessv1.Outcome, error) {
	s := task.Snapshot()
	s.TurnCount++
	if !c.recorded {
		c.pay(task.Run, s.GetTurnCount())
	} else if len(task.Journal) == 0 { // else another worker has started, and may have paid
		if err := task.AppendJournal(ctx, &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{
			TurnStarted: &harnessv1.TurnStarted{TurnNumber: s.GetTurnCount(), Attempt: 1},
		}}, nil, nil); err != nil {
			return nil, err
		}
		c.pay(task.Run, s.GetTurnCount())
	}
	step := &harnessv1.Step{From: "count", To: "count", Snapshot: s, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{}}}
	if s.GetTurnCount() == last {
		step.To = runlog.End
	}
	return &harnessv1.Outcome{Step: step}, nil
}

// count returns a world in which two workers count a few runs, and an invariant that
// checks what they pay.
func count(recorded bool) (sim.Config, func(w *sim.World)) {
	var mu sync.Mutex
	paid, wrong := map[string]int{}, ""
	pay := func(run runlog.Run, number uint32) {
		mu.Lock()
		defer mu.Unlock()
		key := fmt.Sprintf("%s number %d", run, number)
		if paid[key]++; paid[key] > 1 {
			wrong = key + " is paid twice"
		}
	}
	once := sim.Invariant{
		Name:   "paid once",
		Stored: func(*sim.Log, runlog.Entry) string { mu.Lock(); defer mu.Unlock(); return wrong },
		Final: func(w *sim.World) string {
			for _, l := range w.Logs() {
				if n := l.Newest().Record.GetStep().GetSnapshot().GetTurnCount(); n != last {
					return fmt.Sprintf("%s counted to %d", l.Run, n)
				}
			}
			return ""
		},
	}
	cfg := sim.Config{Executors: []string{"count"}, Rates: sim.Everything(), Replicated: true, Check: []sim.Invariant{once}}
	return cfg, func(w *sim.World) {
		for i := range 2 {
			w.Start(fmt.Sprintf("worker-%d", i), func(ctx context.Context, p *sim.Process) error {
				return executor.Run(ctx, p.Executor(), &counter{pay: pay, recorded: recorded})
			})
			w.StartRun(runlog.Run{Namespace: "default", ID: fmt.Sprintf("r%d", i)}, &harnessv1.Step{
				To: "count", Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{}},
			})
		}
	}
}

func TestExecutorThatRecordsPaymentsPaysOnce(t *testing.T) {
	for seed := range uint64(200) {
		cfg, setup := count(true)
		cfg.Seed = seed
		sim.Run(t, cfg, setup)
	}
}

func TestExecutorWithoutRecordsIsDetected(t *testing.T) {
	for seed := range uint64(200) {
		cfg, setup := count(false)
		cfg.Seed = seed
		if r := sim.Try(t, cfg, setup); r.Violation != nil {
			if r.Violation.Invariant != "paid once" || !strings.Contains(r.Violation.Message, "is paid twice") {
				t.Fatal(r.Failure(60, ""))
			}
			t.Logf("caught at seed %d: %s", seed, r.Violation.Message)
			return
		}
	}
	t.Error("not caught within 200 seeds")
}
