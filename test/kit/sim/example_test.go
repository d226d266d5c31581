package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// mailer sends one mail per step and records nothing before it does. If its worker
// dies after the mail and before the commit, the next worker sends the mail again.
type mailer struct{ send func() }

func (mailer) Name() string { return "mailer" }

func (m mailer) Execute(_ context.Context, task *executor.Task) (*harnessv1.Outcome, error) {
	m.send()
	return &harnessv1.Outcome{Step: &harnessv1.Step{
		From: "mailer", To: runlog.End, Snapshot: task.Snapshot(),
		Message: &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{}},
	}}, nil
}

// Seeds are tried until an invariant does not hold. A test passes its own t, and
// uses Run to fail with a trace.
func ExampleTry() {
	t := new(testing.T)
	for seed := range uint64(100) {
		mails := 0
		cfg := sim.Config{
			Seed: seed, Executors: []string{"mailer"}, Rates: sim.Rates{CrashAfter: 2000, CrashBefore: 2000},
			Check: []sim.Invariant{{Name: "one mail", Final: func(*sim.World) string {
				if mails != 1 {
					return "the customer got the mail again"
				}
				return ""
			}}},
		}
		r := sim.Try(t, cfg, func(w *sim.World) {
			w.Start("worker", func(ctx context.Context, p *sim.Process) error {
				return executor.Run(ctx, p.Executor(), mailer{send: func() { mails++ }})
			})
			w.StartRun(runlog.Run{Namespace: "default", ID: "r1"}, &harnessv1.Step{To: "mailer", Snapshot: &harnessv1.Snapshot{}})
		})
		if r.Violation != nil {
			fmt.Printf("%s: %s\n", r.Violation.Invariant, r.Violation.Message)
			return
		}
	}
	fmt.Println("no seed found it")
	// Output:
	// one mail: the customer got the mail again
}

// A process appends and reads as on a real bus, in simulated time.
func ExampleWithLog() {
	sim.WithLog(new(testing.T), sim.Config{}, func(t *testing.T, log runlog.Log) {
		run := runlog.Run{Namespace: "default", ID: "r1"}
		sequence, err := log.Append(t.Context(), &harnessv1.Record{
			Namespace: run.Namespace, RunId: run.ID, Version: 1, Schema: runlog.Schema,
			Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.Park, Snapshot: &harnessv1.Snapshot{}}},
		})
		fmt.Println(sequence, err)
		view, err := log.View(t.Context(), run, sequence)
		fmt.Println(view.Quiescent(), err)
	})
	// Output:
	// 1 <nil>
	// true <nil>
}
