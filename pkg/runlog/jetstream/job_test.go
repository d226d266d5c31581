package jetstream

import (
	"context"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// started appends the first record of a run and returns its sequence.
func started(t *testing.T, l *Log, id string) (runlog.Run, uint64) {
	t.Helper()
	rec := first(id)
	sequence, err := l.Append(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return runOf(rec), sequence
}

func job(run runlog.Run, first uint64, key string) *harnessv1.Job {
	return &harnessv1.Job{Namespace: run.Namespace, RunId: run.ID, FirstSequence: first, Key: key}
}

// TestBusWithoutJobs checks that a bus that was provisioned by an older program can be
// used, that the missing consumer of jobs is reported, and that provisioning adds it.
func TestBusWithoutJobs(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	cfg := Config{InProcess: e.server}
	if err := Provision(t.Context(), cfg, Layout{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	js := admin(t, e)
	for p := range 2 {
		if err := js.DeleteConsumer(t.Context(), runsStream(p), jobConsumer); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	has := func() bool {
		names, err := l.Executors(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(names, workflow.Inference)
	}
	if has() {
		t.Error("jobs are reported to have a consumer")
	}
	refused := func(context.Context, runlog.JobDelivery) { t.Error("a delivery without a consumer") }
	contains(t, l.ConsumeJobs(t.Context(), 1, refused), "no consumer inference", "harness provision")
	run, sequence := started(t, l, "r")
	if created, err := l.CreateJob(t.Context(), job(run, sequence, "k")); err != nil || !created {
		t.Errorf("created is %v, %v", created, err)
	}
	if err := Provision(t.Context(), cfg, Layout{}); err != nil {
		t.Fatal(err)
	}
	if !has() {
		t.Error("provisioning did not add the consumer of jobs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = l.ConsumeJobs(ctx, 1, func(_ context.Context, d runlog.JobDelivery) {
		if d.Job().GetKey() != "k" || d.Ack() != nil {
			t.Errorf("got %v", d.Job())
		}
		cancel()
	})
	if ctx.Err() == nil {
		t.Error(err)
	}
}

// TestForeignJobs checks that messages on the subjects of jobs that the log would not
// write are dropped, and do not block jobs.
func TestForeignJobs(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	run, sequence := started(t, l, "r")
	for key, data := range map[string]string{"a": "\xff", "b": "", "C": ""} {
		put(t, js, runlog.JobSubject(0, run, key), []byte(data))
	}
	if created, err := l.CreateJob(t.Context(), job(run, sequence, "k")); err != nil || !created {
		t.Fatalf("created is %v, %v", created, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_ = l.ConsumeJobs(ctx, 1, func(_ context.Context, d runlog.JobDelivery) {
		if d.Job().GetKey() != "k" {
			t.Errorf("got %v", d.Job())
		}
		_ = d.Ack()
		cancel()
	})
	info, err := js.Consumer(t.Context(), "RUNS_0", jobConsumer)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err := info.Info(t.Context()); err != nil || state.NumPending > 0 {
		t.Errorf("%v, %v", state, err)
	}
}

// TestJobsAreNotRepublished checks that the watch feed contains no jobs.
func TestJobsAreNotRepublished(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l := open(t, e, Config{}, Layout{})
	live := make(chan *nats.Msg, 10)
	sub, err := l.nc.ChanSubscribe("hm.live.>", live)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	run, sequence := started(t, l, "r")
	if _, err := l.CreateJob(t.Context(), job(run, sequence, "k")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), after(first("r"), sequence, 2)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := <-live
		if a, err := runlog.ParseSubject(m.Header.Get(natsSubject)); err != nil || !a.Kind.IsRecord() {
			t.Errorf("the feed contains %s (%v)", m.Header.Get(natsSubject), err)
		}
	}
}
