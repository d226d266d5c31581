package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// TestBusAnswersAsJetStreamDoes makes the same random calls on the simulated bus
// without faults and on JetStream, and compares the results.
func TestBusAnswersAsJetStreamDoes(t *testing.T) {
	const calls = 500
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		var fromBus []string
		sim.WithLog(t, sim.Config{Seed: seed, Executors: workflow.Default()}, func(t *testing.T, log runlog.Log) {
			fromBus = callRandomly(t.Context(), log, seed, calls)
		})
		fromJetStream := callRandomly(t.Context(), openJetStream(t), seed, calls)
		for n := range calls {
			if fromBus[n] != fromJetStream[n] {
				t.Fatalf("seed %d, call %d: the bus returns\n%s\nJetStream returns\n%s", seed, n, fromBus[n], fromJetStream[n])
			}
		}
	}
}

// openJetStream opens an empty log on an embedded server.
func openJetStream(t *testing.T) runlog.Log {
	t.Helper()
	e, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	l, err := e.Open(t.Context(), jetstream.Config{}, jetstream.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// callRandomly makes n random calls on a log and returns what they returned, in
// words.
func callRandomly(ctx context.Context, log runlog.Log, seed uint64, n int) []string {
	random := rand.New(rand.NewPCG(seed, 1))
	results := make([]string, n)
	for i := range results {
		results[i] = randomCall(random)(ctx, log)
	}
	return results
}

// randomCall draws a call. What it does depends on the draw and on the log alone.
func randomCall(random *rand.Rand) func(context.Context, runlog.Log) string {
	run := runlog.Run{Namespace: "default", ID: fmt.Sprintf("r%d", random.IntN(3))}
	number, nonce, kind := uint64(random.IntN(60)), random.Uint64(), random.IntN(14)
	repeat, outdated := random.IntN(4) == 0, random.IntN(6) == 0
	return func(ctx context.Context, log runlog.Log) string {
		view, err := log.View(ctx, run, 0)
		switch kind {
		case 0, 1, 2, 3:
			if err != nil && !errors.Is(err, runlog.ErrNotFound) {
				return err.Error()
			}
			rec := followingRecord(run, view.Newest, nonce, kind > 1)
			if outdated && rec.GetVersion() > 1 {
				rec.Version, rec.PrevSequence = rec.GetVersion()-1, view.Newest.Record.GetPrevSequence()
			}
			sequence, err := log.Append(ctx, rec)
			text := result(err, "stored at %d", sequence)
			if repeat {
				sequence, err = log.Append(ctx, rec)
				text += result(err, ", again at %d", sequence)
			}
			return text
		case 4, 5:
			item := &harnessv1.InboxItem{Id: fmt.Sprint(number % 7), Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}
			sequence, existed, err := log.AppendInbox(ctx, run, item, number/2)
			return result(err, "item at %d, existed %v", sequence, existed)
		case 6:
			last, err := log.LastInbox(ctx, run)
			if err != nil || last == 0 {
				return result(err, "no items")
			}
			items, err := log.Inbox(ctx, run, number/2, last)
			text := fmt.Sprintf("last %d", last)
			for _, item := range items {
				text += fmt.Sprintf(", item %s at %d after %d", item.GetId(), item.GetSequence(), item.GetPrevSequence())
			}
			return result(err, "%s", text)
		case 7:
			e, err := log.Read(ctx, run, number)
			return result(err, "read %d: version %d", e.Sequence, e.Header.Version)
		case 8:
			ref, err := log.PutBlob(ctx, run, []byte(fmt.Sprint(number)))
			if err != nil {
				return err.Error()
			}
			data, err := log.Blob(ctx, run, ref.GetDigest())
			return result(err, "blob %s of %q", ref.GetDigest(), data)
		case 9:
			newest, err := log.Newest(ctx, run)
			return result(err, "newest message %d", newest)
		case 10:
			if number > 3 {
				names, err := log.Executors(ctx)
				return result(err, "%v, AckWait above a second: %v", slices.Sorted(slices.Values(names)), log.AckWait() > time.Second)
			}
			return result(log.Erase(ctx, run, view.Newest.Sequence*(number%2), runlog.Everything), "erased")
		case 11, 12:
			return keyedCall(ctx, log, run, view.Newest, fmt.Sprint(number%5), outdated)
		}
		return result(err, "newest %d, step %d, inbox %d", view.Newest.Sequence, view.Step.Sequence, view.InboxSequence)
	}
}

// keyedCall stores a job and its result, with outdated for a wrong first record.
func keyedCall(ctx context.Context, log runlog.Log, run runlog.Run, newest runlog.Entry, key string, outdated bool) string {
	first := newest.Sequence
	if entries, err := runlog.Back(ctx, log, newest, 0); err == nil && len(entries) > 0 && !outdated {
		first = entries[0].Sequence
	}
	created, err := log.CreateJob(ctx, &harnessv1.Job{Namespace: run.Namespace, RunId: run.ID, FirstSequence: first, Key: key})
	text := result(err, "created %v", created)
	stored, err := log.PutBlobAs(ctx, run, first, key, fmt.Append(nil, first))
	text += result(err, ", stored %v", stored)
	data, err := log.BlobAs(ctx, run, key)
	return text + result(err, ", result %q, %v", data, data == nil)
}

// result is the error of the run log that err is, or the formatted text.
func result(err error, format string, args ...any) string {
	for _, known := range []error{runlog.ErrFenced, runlog.ErrNotFound, runlog.ErrTooLarge, runlog.ErrUnavailable} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf(format, args...)
}

func followingRecord(run runlog.Run, before runlog.Entry, nonce uint64, step bool) *harnessv1.Record {
	rec := &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Schema: runlog.Schema, Version: before.Header.Version + 1, PrevSequence: before.Sequence,
		Writer: &harnessv1.Writer{Executor: "turn", Instance: "writer", Nonce: nonce},
		Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{
			TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1, Attempt: 1},
		}}},
	}
	if step || before.Sequence == 0 {
		rec.Body = &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.End, Snapshot: &harnessv1.Snapshot{}}}
	}
	return rec
}
