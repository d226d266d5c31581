package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/memory"
	"github.com/harnessmesh/harnessmesh/pkg/sim"
)

// TestWithoutFaultsTheBusAnswersAsARunLog asks the simulated bus and the run log in
// memory, which is held to the suite of all run logs, the same things, and expects
// the same answers. Whether the runs come to rest is no matter here.
func TestWithoutFaultsTheBusAnswersAsARunLog(t *testing.T) {
	asked := 0
	for seed := range uint64(60) {
		cfg := sim.Config{Seed: seed, Executors: []string{"repair", "turn"}}
		sim.Try(t, cfg, func(w *sim.World) {
			w.Start("asker", func(ctx context.Context, p *sim.Process) error {
				log := memory.New(memory.Config{Executors: cfg.Executors})
				defer log.Close()
				random := w.Random("asker")
				for n := range 150 {
					question := draw(random)
					one, other := question(ctx, p.Log()), question(ctx, log)
					if one != other {
						t.Errorf("seed %d, question %d: the bus says\n%s\nthe log in memory says\n%s", seed, n, one, other)
						break
					}
					asked++
				}
				<-ctx.Done()
				return nil
			})
		})
		if t.Failed() {
			return
		}
	}
	if asked < 6_000 {
		t.Errorf("%d questions were asked", asked)
	}
}

// draw draws something to ask a log, in words that can be compared.
func draw(random *rand.Rand) func(context.Context, runlog.Log) string {
	run := runlog.Run{Namespace: "default", ID: fmt.Sprintf("r%d", random.IntN(3))}
	place, nonce, kind := uint64(random.IntN(60)), random.Uint64(), random.IntN(12)
	again, version := random.IntN(4) == 0, random.IntN(6) == 0
	told := func(err error, format string, args ...any) string {
		for _, known := range []error{runlog.ErrFenced, runlog.ErrNotFound, runlog.ErrTooLarge, runlog.ErrUnavailable} {
			if errors.Is(err, known) {
				return known.Error()
			}
		}
		return fmt.Sprintf(format, args...)
	}
	return func(ctx context.Context, log runlog.Log) string {
		newest, err := log.View(ctx, run, 0)
		switch kind {
		case 0, 1, 2, 3:
			if err != nil && !errors.Is(err, runlog.ErrNotFound) {
				return err.Error()
			}
			rec := record(run, newest.Newest, nonce, kind > 1)
			if version && rec.GetVersion() > 1 { // of somebody who is behind
				rec.Version, rec.PrevSequence = rec.GetVersion()-1, newest.Newest.Record.GetPrevSequence()
			}
			sequence, err := log.Append(ctx, rec)
			text := told(err, "stored at %d", sequence)
			if again {
				sequence, err = log.Append(ctx, rec)
				text += told(err, ", again at %d", sequence)
			}
			return text
		case 4, 5:
			item := &harnessv1.InboxItem{Id: fmt.Sprint(place % 7), Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}
			sequence, existed, err := log.AppendInbox(ctx, run, item, place/2)
			return told(err, "item at %d, existed %v", sequence, existed)
		case 6:
			last, err := log.LastInbox(ctx, run)
			if err != nil || last == 0 {
				return told(err, "no items")
			}
			items, err := log.Inbox(ctx, run, place/2, last)
			return told(err, "last %d, items %v", last, items)
		case 7:
			if place >= newest.Newest.Sequence { // it would be waited for
				return ""
			}
			e, err := log.Read(ctx, run, place)
			return told(err, "read %d: version %d", e.Sequence, e.Header.Version)
		case 8:
			ref, err := log.PutBlob(ctx, run, []byte(fmt.Sprint(place)))
			return told(err, "blob %v", ref)
		case 9:
			data, err := log.Blob(ctx, run, content.Digest([]byte(fmt.Sprint(place))))
			return told(err, "blob of %q", data)
		case 10:
			if place > 3 {
				return fmt.Sprint(slices.Sorted(slices.Values(must(log.Executors(ctx)))), log.AckWait() > time.Second)
			}
			return told(log.Erase(ctx, run, newest.Newest.Sequence*(place%2), runlog.Everything), "erased")
		}
		return told(err, "newest %d, step %d, inbox %d", newest.Newest.Sequence, newest.Step.Sequence, newest.InboxSequence)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func record(run runlog.Run, before runlog.Entry, nonce uint64, step bool) *harnessv1.Record {
	rec := &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Schema: runlog.Schema, Version: before.Header.Version + 1, PrevSequence: before.Sequence,
		Writer: &harnessv1.Writer{Executor: "turn", Instance: "asker", Nonce: nonce},
		Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{
			TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1, Attempt: 1},
		}}},
	}
	if step || before.Sequence == 0 {
		rec.Body = &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.End, Snapshot: &harnessv1.Snapshot{}}}
	}
	return rec
}
