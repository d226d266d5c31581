package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func TestWhatACallerChangesLaterIsNotStored(t *testing.T) {
	d := sit(t)
	rec := d.next("r", "turn")
	want := proto.CloneOf(rec)
	sequence, err := d.Append(t.Context(), rec)
	d.must(err)
	rec.GetStep().GetSnapshot().GoalPreview = "changed"
	entry, err := d.Read(t.Context(), named("r"), sequence)
	d.must(err)
	if !proto.Equal(entry.Record, want) {
		t.Fatalf("stored %v, want %v", entry.Record, want)
	}

	item := &harnessv1.InboxItem{Id: "i", Input: &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline("text")}}}
	at, _, err := d.AppendInbox(t.Context(), named("r"), item, 0)
	d.must(err)
	data := []byte("bytes")
	ref, err := d.PutBlob(t.Context(), named("r"), data)
	d.must(err)
	item.GetUserMessage().Content = content.Inline("changed")
	data[0] = 'x'
	for range 2 { // what readers are given is their own too
		items, err := d.Inbox(t.Context(), named("r"), 0, at)
		d.must(err)
		if got := items[0].GetUserMessage().GetContent().GetInline(); got != "text" {
			t.Fatalf("input %q", got)
		}
		items[0].GetUserMessage().Content = nil
		blob, err := d.Blob(t.Context(), named("r"), ref.GetDigest())
		d.must(err)
		if string(blob) != "bytes" {
			t.Fatalf("blob %q", blob)
		}
		blob[0] = 'x'
	}
}

// A record of a newer program is stored and told of as one that cannot be read.
func TestARecordOfANewerSchemaIsAGapInTheFeed(t *testing.T) {
	d := sit(t)
	first := d.step("r", "turn")
	rec := d.next("r", runlog.Park)
	rec.Schema = runlog.Schema + 1
	fed := make(chan runlog.Entry, 10)
	stop, err := d.Subscribe(t.Context(), named("r"), func(e *runlog.Entry) { fed <- *e })
	d.must(err)
	sequence, err := d.Append(t.Context(), rec)
	d.must(err)
	again, err := d.Append(t.Context(), rec)
	d.must(err)
	if again != sequence {
		t.Fatalf("stored at %d and again at %d", sequence, again)
	}
	entry, err := d.Read(t.Context(), named("r"), sequence)
	d.must(err)
	if entry.Record != nil || !errors.Is(entry.Err, runlog.ErrSchemaTooNew) || entry.Header != runlog.HeaderOf(rec) {
		t.Fatalf("got %v, %v, %v", entry.Header, entry.Record, entry.Err)
	}
	view, err := d.View(t.Context(), named("r"), sequence)
	d.must(err)
	if view.Newest.Sequence != sequence || view.Step.Sequence != sequence {
		t.Fatalf("newest %d, step %d, want %d", view.Newest.Sequence, view.Step.Sequence, sequence)
	}
	d.versions["r"], d.newest["r"] = 2, sequence
	next := d.step("r", "turn")
	if e := <-fed; e.Sequence != next {
		t.Fatalf("fed %d, want %d, which is behind %d and %d", e.Sequence, next, first, sequence)
	}
	stop()
}

// Others see an erasure that is half done, and the order in which it goes.
func TestAnErasureGoesOneByOneAndTheNewestRecordIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		d.must(d.SetTimer(t.Context(), named("r"), 1, time.Now().Add(time.Hour)))
		d.must(d.SetTimer(t.Context(), named("r"), 2, time.Now())) // fires, and nobody is there
		_, err := d.PutBlob(t.Context(), named("r"), []byte("bytes"))
		d.must(err)
		records := []uint64{d.step("r", "turn"), d.step("r", "repair")}
		inputs := []uint64{d.say("r", "1"), d.say("r", "2")}
		records = append(records, d.step("r", runlog.End))

		erased := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { erased <- d.Erase(ctx, named("r"), 0, runlog.Everything) }()
		time.Sleep(3*erasePause + 1) // two timers, a blob, an input
		if _, err := d.Inbox(t.Context(), named("r"), 0, inputs[1]); !errors.Is(err, runlog.ErrNotFound) {
			t.Fatalf("the newest input was not erased first: %v", err)
		}
		if items, err := d.Inbox(t.Context(), named("r"), 0, inputs[0]); err != nil || len(items) != 1 {
			t.Fatalf("the oldest input is gone: %v", err)
		}
		cancel()
		if err := <-erased; !errors.Is(err, runlog.ErrUnavailable) {
			t.Fatal(err)
		}
		for _, sequence := range records {
			_, err := d.Read(t.Context(), named("r"), sequence)
			d.must(err)
		}

		go func() { erased <- d.Erase(t.Context(), named("r"), 0, runlog.Everything) }()
		time.Sleep(erasePause + 1) // the other input
		if _, err := d.Read(t.Context(), named("r"), records[0]); !errors.Is(err, runlog.ErrNotFound) {
			t.Fatalf("the oldest record was not erased first: %v", err)
		}
		time.Sleep(erasePause)
		view, err := d.View(t.Context(), named("r"), records[2])
		d.must(err)
		if view.Newest.Sequence != records[2] {
			t.Fatalf("the newest record is %d", view.Newest.Sequence)
		}
		d.must(<-erased)
		if _, err := d.View(t.Context(), named("r"), 0); !errors.Is(err, runlog.ErrNotFound) {
			t.Fatal(err)
		}
		if len(d.runs) != 0 || len(d.clock.due) != 0 {
			t.Fatalf("%d runs and %d alarms are left", len(d.runs), len(d.clock.due))
		}

		// Nothing of it is delivered, however long one waits.
		stray := make(chan struct{}, 10)
		ctx, cancel = context.WithCancel(t.Context())
		go func() { _ = d.Consume(ctx, "turn", 1, func(context.Context, runlog.Delivery) { stray <- struct{}{} }) }()
		go func() { _ = d.ConsumeWakes(ctx, 1, func(context.Context, runlog.Delivery) { stray <- struct{}{} }) }()
		go func() {
			_ = d.ConsumeTimers(ctx, func(context.Context, runlog.Run, uint64) error {
				stray <- struct{}{}
				return nil
			})
		}()
		time.Sleep(24 * time.Hour)
		if len(stray) > 0 {
			t.Fatalf("%d deliveries of an erased run", len(stray))
		}
		cancel()
	})
}
