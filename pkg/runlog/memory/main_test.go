package memory

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/runlogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLog(t *testing.T) {
	t.Parallel()
	runlogtest.Suite(t, func(t *testing.T) runlog.Log {
		l := New(Config{})
		t.Cleanup(l.Close)
		return l
	})
}

// desk is a test with a log and what it reads and writes there.
type desk struct {
	*testing.T
	*Log
	versions map[string]uint64
	newest   map[string]uint64
}

// sit gives a test a log that is closed with it.
func sit(t *testing.T) *desk {
	t.Helper()
	l := New(Config{})
	t.Cleanup(l.Close)
	return &desk{T: t, Log: l, versions: map[string]uint64{}, newest: map[string]uint64{}}
}

func named(id string) runlog.Run { return runlog.Run{Namespace: "test", ID: id} }

// next is a record that may follow in a run: a step to an executor.
func (d *desk) next(id, to string) *harnessv1.Record {
	return &harnessv1.Record{
		Namespace: "test", RunId: id, Version: d.versions[id] + 1, PrevSequence: d.newest[id], Schema: runlog.Schema,
		Writer: &harnessv1.Writer{Executor: "test", Instance: "w", Nonce: d.versions[id]},
		Body:   &harnessv1.Record_Step{Step: &harnessv1.Step{From: "test", To: to, Snapshot: &harnessv1.Snapshot{GoalPreview: id}}},
	}
}

// step appends a step to an executor and returns its sequence.
func (d *desk) step(id, to string) uint64 {
	d.Helper()
	sequence, err := d.Append(d.Context(), d.next(id, to))
	if err != nil {
		d.Fatal(err)
	}
	d.versions[id]++
	d.newest[id] = sequence
	return sequence
}

// say stores an input and returns its sequence.
func (d *desk) say(id, item string) uint64 {
	d.Helper()
	sequence, _, err := d.AppendInbox(d.Context(), named(id), &harnessv1.InboxItem{Id: item}, 0)
	if err != nil {
		d.Fatal(err)
	}
	return sequence
}

// handed is a delivery and when and to whom it came.
type handed struct {
	runlog.Delivery
	at     time.Time
	worker string
}

// work consumes the steps to turn until stop.
func (d *desk) work(worker string, concurrency int, to chan<- handed) (stop func() error) {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- d.Consume(ctx, "turn", concurrency, func(_ context.Context, got runlog.Delivery) {
			to <- handed{got, time.Now(), worker}
		})
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// end stops a worker.
func (d *desk) end(stop func() error) {
	d.Helper()
	if err := stop(); !errors.Is(err, context.Canceled) {
		d.Error(err)
	}
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}
