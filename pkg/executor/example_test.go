package executor_test

import (
	"context"
	"fmt"
	"os"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
)

// review is a custom executor: it decides without reading anything else.
var review = &executor.Pure{
	ExecutorName: "review",
	Decide: func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		snapshot := in.GetStep().GetSnapshot()
		fmt.Printf("review of %s after %d turns\n", in.GetRunId(), snapshot.GetTurnCount())
		return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{
			Step: &harnessv1.Step{
				From: "review", To: "stopdecision", Snapshot: snapshot,
				Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: snapshot.GetTurnCount()}},
			},
		}}}, nil
	},
}

// A custom executor receives the steps that are addressed to it and passes the run
// on. Here it runs until the log contains its step.
func ExampleRun() {
	if err := reviewOneRun(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// review of r1 after 3 turns
	// version 2: step to stopdecision
}

func reviewOneRun(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: dir})
	if err != nil {
		return err
	}
	defer server.Stop()
	log, err := server.Open(ctx, jetstream.Config{}, jetstream.Layout{Executors: []string{"review"}})
	if err != nil {
		return err
	}
	defer log.Close()

	run := runlog.Run{Namespace: "default", ID: "r1"}
	if _, err := log.Append(ctx, &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Version: 1, Schema: runlog.Schema,
		Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: "review", Snapshot: &harnessv1.Snapshot{TurnCount: 3}}},
	}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- executor.Run(ctx, executor.Config{Log: log, Instance: executor.NewInstance()}, review)
	}()
	err = runlog.Watcher{After: 1, Handle: func(e runlog.Entry) error {
		fmt.Printf("version %d: step to %s\n", e.Header.Version, e.Record.GetStep().GetTo())
		stop()
		return nil
	}}.Watch(ctx, log, run)
	if ctx.Err() == nil {
		return err
	}
	return <-ended
}
