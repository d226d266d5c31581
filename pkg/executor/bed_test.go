package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// bed is a real log with one run. The loop under test reads through a separate
// connection, so that nothing comes from the writer's cache.
type bed struct {
	t      testing.TB
	open   func() *jetstream.Log
	log    *jetstream.Log // the loop's
	writer *jetstream.Log // of all other processes
	raw    natsjs.JetStream
	run    runlog.Run
	newest runlog.Entry
}

func newBed(t *testing.T) *bed {
	t.Helper()
	t.Parallel()
	return newBedWith(t, 2*time.Second) // some tests wait for a redelivery
}

// newBedWith is newBed with a takeover time and not parallel.
func newBedWith(t testing.TB, takeover time.Duration) *bed {
	t.Helper()
	e, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	open := func() *jetstream.Log {
		l, err := e.Open(t.Context(), jetstream.Config{}, jetstream.Layout{Takeover: takeover})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	nc, err := nats.Connect(e.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	raw, err := natsjs.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{t: t, open: open, log: open(), writer: open(), raw: raw, run: runlog.Run{Namespace: "default", ID: "r"}}
}

// put appends a record after the newest one, as another process does.
func (b *bed) put(rec *harnessv1.Record) runlog.Entry {
	b.t.Helper()
	rec.Namespace, rec.RunId = b.run.Namespace, b.run.ID
	rec.Version, rec.PrevSequence = b.newest.Header.Version+1, b.newest.Sequence
	if rec.GetSchema() == 0 {
		rec.Schema = runlog.Schema
	}
	rec.Writer = &harnessv1.Writer{Executor: "elsewhere", Instance: "other", Nonce: rec.GetVersion()}
	sequence, err := b.writer.Append(b.t.Context(), rec)
	if err != nil {
		b.t.Fatal(err)
	}
	b.newest = runlog.Entry{Run: b.run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	return b.newest
}

// step appends a step to an executor, in EXECUTING.
func (b *bed) step(to string) runlog.Entry {
	b.t.Helper()
	return b.put(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: stepTo(to)}})
}

func stepTo(to string) *harnessv1.Step {
	return &harnessv1.Step{
		From: "before", To: to,
		Snapshot: &harnessv1.Snapshot{
			Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING, TurnCount: 3, MessageCount: 7,
			Config: runstate.Resolve(nil, 0), Workflow: workflow.Default(),
		},
		Message: &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}},
	}
}

// journal appends a journal entry of another worker.
func (b *bed) journal(entry *harnessv1.Journal) runlog.Entry {
	b.t.Helper()
	return b.put(&harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: entry}})
}

func claimed(attempt uint32) *harnessv1.Journal {
	return &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 4, Attempt: attempt}}}
}

// broken stores bytes that are not a record.
func (b *bed) broken(subject string) runlog.Entry {
	b.t.Helper()
	version := b.newest.Header.Version + 1
	ack, err := b.raw.PublishMsg(b.t.Context(), &nats.Msg{Subject: subject, Data: []byte("\xff\xff not a record"), Header: nats.Header{
		"Hm-Version": {fmt.Sprint(version)}, "Hm-Schema": {"1"}, "Hm-Cursor": {"0"},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.newest = runlog.Entry{
		Run: b.run, Sequence: ack.Sequence, Header: runlog.Header{Version: version, Schema: 1}, Err: errors.New("decode record"),
	}
	return b.newest
}

// tail returns the stored records after version after.
func (b *bed) tail(after uint64) []*harnessv1.Record {
	b.t.Helper()
	view, err := b.writer.View(b.t.Context(), b.run, b.newest.Sequence)
	if err != nil {
		b.t.Fatal(err)
	}
	entries, err := runlog.Back(b.t.Context(), b.writer, view.Newest, after)
	if err != nil {
		b.t.Fatal(err)
	}
	var records []*harnessv1.Record
	for _, e := range entries {
		records = append(records, e.Record)
		b.newest = e
	}
	return records
}

// deliver passes an entry to a loop around x and returns the delivery.
func (b *bed) deliver(ctx context.Context, x Executor, e runlog.Entry, redelivered bool) *testDelivery {
	b.t.Helper()
	d := &testDelivery{entry: e, again: redelivered}
	loopOf(Config{Log: b.log, Now: func() time.Time { return noon }}, x).handle(ctx, d.received())
	return d
}

// loopOf returns a loop around x.
func loopOf(cfg Config, x Executor) *loop {
	cfg.Instance = "mine"
	return newLoop(cfg.withDefaults(), x)
}

// received returns the delivery to a worker that does not stop.
func (d *testDelivery) received() *stepDelivery {
	return &stepDelivery{Delivery: d, onStop: func(func()) func() bool { return func() bool { return true } }}
}

// testDelivery is a delivery that records the calls of its methods.
type testDelivery struct {
	entry  runlog.Entry
	again  bool
	number uint64 // 0: the first or the second, as again says
	onWait func() // called after a wait

	mu       sync.Mutex
	recorded []string
	beats    chan struct{}
}

func (d *testDelivery) record(what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recorded = append(d.recorded, what)
	return nil
}

func (d *testDelivery) Entry() runlog.Entry { return d.entry }
func (d *testDelivery) IsInbox() bool       { return false }
func (d *testDelivery) Redelivered() bool   { return d.again }
func (d *testDelivery) Number() uint64 {
	switch {
	case d.number > 0:
		return d.number
	case d.again:
		return 2
	}
	return 1
}
func (d *testDelivery) Ack() error                    { return d.record("ack") }
func (d *testDelivery) Nak(after time.Duration) error { return d.record("nak " + after.String()) }
func (d *testDelivery) InProgress() error {
	if d.beats != nil {
		d.beats <- struct{}{}
	}
	return nil
}

// Wait records the wait.
func (d *testDelivery) Wait(ctx context.Context, wait func()) error {
	_ = d.record("wait")
	wait()
	if d.onWait != nil {
		d.onWait()
	}
	return context.Cause(ctx)
}

// calls returns the recorded calls.
func (d *testDelivery) calls() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.recorded)
}

const (
	acked  = "[ack]"
	silent = "[]"
)

// executorFunc is an executor that calls a function.
type executorFunc struct {
	name string
	f    func(ctx context.Context, task *Task) (*harnessv1.Outcome, error)
}

func (x executorFunc) Name() string { return x.name }
func (x executorFunc) Execute(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
	return x.f(ctx, task)
}

// passOn returns an outcome for the stop decision.
func passOn(task *Task) *harnessv1.Outcome {
	s := task.Snapshot()
	step := &harnessv1.Step{From: "turn", To: workflow.StopDecision, Snapshot: s, Message: &harnessv1.Step_TurnComplete{
		TurnComplete: &harnessv1.TurnComplete{TurnNumber: 4},
	}}
	if err := runstate.ChangePhase(step, s, harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED); err != nil {
		panic(err)
	}
	return &harnessv1.Outcome{Step: step}
}

func passesOn(_ context.Context, task *Task) (*harnessv1.Outcome, error) { return passOn(task), nil }
