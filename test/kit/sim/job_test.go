package sim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

const (
	jobRuns = 2
	runJobs = 3
)

// createJobs creates the jobs of the runs, and repeats calls without an answer.
func createJobs(ctx context.Context, log runlog.Log) error {
	for r := range jobRuns {
		run := runlog.Run{Namespace: "default", ID: fmt.Sprint("r", r)}
		for k := range runJobs {
			err := retry(ctx, func() error {
				view, err := log.View(ctx, run, 0)
				if err != nil {
					return err
				}
				_, err = log.CreateJob(ctx, &harnessv1.Job{
					Namespace: run.Namespace, RunId: run.ID, FirstSequence: view.Newest.Sequence, Key: fmt.Sprint("k", k), Purpose: "summarize",
				})
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return nil
}

// retry repeats f until it returns another error than ErrUnavailable and ErrNotFound,
// which a replica that lags may return.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, runlog.ErrUnavailable) && !errors.Is(err, runlog.ErrNotFound) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// results are what workers have read under each key, and how many deliveries were
// repeated.
type results struct {
	mu          sync.Mutex
	seen        map[string]string
	changed     string
	redelivered int
}

// work stores a result for each job, and then acknowledges it; with early it does so in
// the other order.
func (r *results) work(ctx context.Context, p *sim.Process, early bool) error {
	log := p.Log()
	return log.ConsumeJobs(ctx, 2, func(ctx context.Context, d runlog.JobDelivery) {
		job := d.Job()
		run := runlog.Run{Namespace: job.GetNamespace(), ID: job.GetRunId()}
		if early {
			_ = d.Ack()
		}
		_, err := log.PutBlobAs(ctx, run, job.GetFirstSequence(), job.GetKey(), []byte(p.Instance))
		var data []byte
		if err == nil {
			data, err = log.BlobAs(ctx, run, job.GetKey())
		}
		if err != nil {
			_ = d.Nak(time.Second)
			return
		}
		r.read(run.ID+" "+job.GetKey(), string(data), d.Redelivered())
		_ = d.Ack()
	})
}

func (r *results) read(name, data string, redelivered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.seen[name]; ok && before != data || data == "" {
		r.changed = fmt.Sprintf("the result of %s was %q and is %q", name, before, data)
	}
	r.seen[name] = data
	if redelivered {
		r.redelivered++
	}
}

// complete returns the fault at the end, empty for none.
func (r *results) complete(w *sim.World) string {
	for _, l := range w.Logs() {
		if n := len(l.Jobs()); n != runJobs {
			return fmt.Sprintf("%v has %d jobs, want %d", l.Run, n, runJobs)
		}
		for i, job := range l.Jobs() {
			if got := string(l.BlobAs(job.GetKey())); got == "" || got != r.seen[l.Run.ID+" "+job.GetKey()] || job.GetKey() != fmt.Sprint("k", i) {
				return fmt.Sprintf("job %d of %v, %s, has the result %q, workers have read %v", i, l.Run, job.GetKey(), got, r.seen)
			}
		}
	}
	return r.changed
}

// tryJobs simulates two workers under faults.
func tryJobs(t *testing.T, seed uint64, early bool) (sim.Result, *results) {
	t.Helper()
	r := &results{seen: map[string]string{}}
	cfg := sim.Config{
		Seed: seed, Replicated: seed%2 == 1, Rates: sim.Everything(), Steps: 300,
		Check: []sim.Invariant{{Name: "each job has one result", Final: r.complete}},
	}
	cfg.Rates.CrashBefore, cfg.Rates.CrashAfter = 200, 300
	return sim.Try(t, cfg, func(w *sim.World) {
		for i := range jobRuns {
			w.StartRun(runlog.Run{Namespace: "default", ID: fmt.Sprint("r", i)}, &harnessv1.Step{To: runlog.End, Snapshot: &harnessv1.Snapshot{}})
		}
		w.Start("creator", func(ctx context.Context, p *sim.Process) error { return createJobs(ctx, p.Log()) })
		for i := range 2 {
			w.Start(fmt.Sprint("worker-", i), func(ctx context.Context, p *sim.Process) error { return r.work(ctx, p, early) })
		}
	}), r
}

// TestJobsSurviveFaults checks that every job is delivered until it has its result, and
// that the first result stays.
func TestJobsSurviveFaults(t *testing.T) {
	redelivered := 0
	for seed := range uint64(200) {
		result, r := tryJobs(t, seed, false)
		if result.Violation != nil {
			t.Fatal(result.Failure(60, ""))
		}
		redelivered += r.redelivered
	}
	if redelivered < 100 {
		t.Errorf("only %d deliveries were repeated", redelivered)
	}
}

// TestForgottenJobIsDetected checks that an acknowledgement before the result is a
// violation.
func TestForgottenJobIsDetected(t *testing.T) {
	const want = "a job is acknowledged once its result is stored"
	for seed := range uint64(10) {
		if result, _ := tryJobs(t, seed, true); result.Violation != nil {
			if result.Violation.Invariant != want {
				t.Fatal(result.Failure(60, ""))
			}
			return
		}
	}
	t.Error("no seed detects it")
}

// TestJobEndsAreLost checks that reports of ends are lost as pokes are.
func TestJobEndsAreLost(t *testing.T) {
	const blobs = 100
	var reported atomic.Int64
	run := runlog.Run{Namespace: "default", ID: "r"}
	sim.Run(t, sim.Config{Rates: sim.Rates{LostPoke: 5000}}, func(w *sim.World) {
		w.StartRun(run, &harnessv1.Step{To: runlog.End, Snapshot: &harnessv1.Snapshot{}})
		w.Start("worker", func(ctx context.Context, p *sim.Process) error {
			stop, err := p.Log().OnJobEnd(func(runlog.Run, string) { reported.Add(1) })
			if err != nil {
				return err
			}
			defer stop()
			for i := range blobs {
				if _, err := p.Log().PutBlobAs(ctx, run, 1, fmt.Sprint("k", i), nil); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return nil
		})
	})
	if n := reported.Load(); n < blobs/4 || n > blobs*3/4 {
		t.Errorf("%d of %d ends were reported", n, blobs)
	}
}
