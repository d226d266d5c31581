package transcripts

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/compaction"
	"github.com/harnessmesh/harnessmesh/services/repair"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// TestPoisonEndsVisibly runs the executors themselves, on a real log: one that
// panics at a step again and again makes a FAILED run with a result.
func TestPoisonEndsVisibly(t *testing.T) {
	t.Parallel()
	e, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	log, err := e.Open(t.Context(), jetstream.Config{}, jetstream.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()

	d := newDriver(t)
	d.play("start Go")
	if _, err := log.Append(t.Context(), d.log[0]); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	mesh, ctx := errgroup.WithContext(ctx)
	cfg := executor.Config{Log: log, Instance: "mesh"}
	for _, x := range []*executor.Pure{
		{ExecutorName: repair.Name, Decide: repair.Decide, Observe: func(_ context.Context, task *executor.Task, key string) (*harnessv1.Observation, error) {
			return d.observe(task.Step(), nil, key), nil
		}},
		{ExecutorName: compaction.Name, Decide: func(*harnessv1.StepInput) (*harnessv1.StepOutput, error) { panic("out of order") }},
		{ExecutorName: stopdecision.Name, Decide: stopdecision.Decide},
	} {
		mesh.Go(func() error { return executor.Run(ctx, cfg, x) })
	}
	ended := errors.New("ended")
	failures := 0
	var last *harnessv1.Step
	run := runlog.Run{Namespace: d.log[0].GetNamespace(), ID: d.log[0].GetRunId()}
	err = runlog.Watcher{Handle: func(e runlog.Entry) error {
		if e.Record.GetJournal().GetExecutorFailed() != nil {
			failures++
		}
		if last = e.Record.GetStep(); last.GetTo() == runlog.End {
			return ended
		}
		return nil
	}}.Watch(t.Context(), log, run)
	stop()
	if !errors.Is(err, ended) || mesh.Wait() != nil {
		t.Fatal(err, mesh.Wait())
	}
	result := last.GetResult()
	if failures != executor.MaxFailures || result.GetStatus() != harnessv1.RunStatus_RUN_STATUS_FAILED || result.GetReason().GetKind() != "poison" {
		t.Errorf("after %d failures: %v", failures, result)
	}
}
