package runlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
)

// withLog calls f with an empty log on an embedded server.
func withLog(f func(ctx context.Context, log runlog.Log) error) error {
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
	ctx := context.Background()
	log, err := server.Open(ctx, jetstream.Config{}, jetstream.Layout{})
	if err != nil {
		return err
	}
	defer log.Close()
	return f(ctx, log)
}

// stepTo returns the record that follows prev in a run: a step to an executor.
func stepTo(prev runlog.Entry, to string) *harnessv1.Record {
	return &harnessv1.Record{
		Namespace: prev.Run.Namespace, RunId: prev.Run.ID, Schema: runlog.Schema,
		Version: prev.Header.Version + 1, PrevSequence: prev.Sequence,
		Writer: &harnessv1.Writer{Executor: "example", Instance: "worker-1", Nonce: prev.Sequence},
		Body:   &harnessv1.Record_Step{Step: &harnessv1.Step{To: to, Snapshot: &harnessv1.Snapshot{}}},
	}
}

// Two writers append after the same record. The fence admits one of them.
func Example() {
	err := withLog(func(ctx context.Context, log runlog.Log) error {
		run := runlog.Run{Namespace: "default", ID: "r1"}
		if _, err := log.Append(ctx, stepTo(runlog.Entry{Run: run}, "repair")); err != nil {
			return err
		}
		view, err := log.View(ctx, run, 0)
		if err != nil {
			return err
		}
		first, second := stepTo(view.Newest, "turn"), stepTo(view.Newest, runlog.Park)
		second.Writer.Instance = "worker-2"
		sequence, err := log.Append(ctx, first)
		if err != nil {
			return err
		}
		_, err = log.Append(ctx, second)
		fmt.Println("the second writer is fenced off:", errors.Is(err, runlog.ErrFenced))

		if view, err = log.View(ctx, run, sequence); err != nil {
			return err
		}
		entries, err := runlog.Back(ctx, log, view.Newest, 0)
		for _, e := range entries {
			fmt.Printf("version %d: step to %s\n", e.Header.Version, e.Record.GetStep().GetTo())
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// the second writer is fenced off: true
	// version 1: step to repair
	// version 2: step to turn
}

// A watch delivers every record after a version, in order, each once.
func ExampleWatcher_Watch() {
	err := withLog(func(ctx context.Context, log runlog.Log) error {
		prev := runlog.Entry{Run: runlog.Run{Namespace: "default", ID: "r1"}}
		for _, to := range []string{"repair", "turn", runlog.End} {
			rec := stepTo(prev, to)
			sequence, err := log.Append(ctx, rec)
			if err != nil {
				return err
			}
			prev.Sequence, prev.Header = sequence, runlog.HeaderOf(rec)
		}
		ended := errors.New("the run has ended")
		err := runlog.Watcher{After: 1, Handle: func(e runlog.Entry) error {
			fmt.Printf("version %d: step to %s\n", e.Header.Version, e.Record.GetStep().GetTo())
			if e.Record.GetStep().GetTo() == runlog.End {
				return ended
			}
			return nil
		}}.Watch(ctx, log, prev.Run)
		fmt.Println(err)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// version 2: step to turn
	// version 3: step to end
	// the run has ended
}
