package inferenceserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/services/inference"
)

// Waits of a worker.
const (
	// putBackDelay is the time after which a job is delivered again that could not be
	// carried out.
	putBackDelay = time.Second
	// storePause is the time between two tries to store a result while the log is away.
	storePause = 250 * time.Millisecond
	// storeTime bounds the storing of a result by a worker that stops.
	storeTime = 10 * time.Second
)

// maxPanics bounds the jobs whose panics are counted.
const maxPanics = 1024

// worker carries out the jobs that are delivered to this process.
type worker struct {
	*Server
	tracer  trace.Tracer
	metrics *telemetry.Metrics

	mu      sync.Mutex
	working map[place]bool // jobs in work in this process
	panics  map[place]int
}

// place identifies a job.
type place struct {
	run   runlog.Run
	first uint64
	key   string
}

func placeOf(job *harnessv1.Job) place {
	return place{run: runOf(job), first: job.GetFirstSequence(), key: job.GetKey()}
}

func runOf(job *harnessv1.Job) runlog.Run {
	return runlog.Run{Namespace: job.GetNamespace(), ID: job.GetRunId()}
}

// start records that a job is in work in this process. first is false if it already
// was.
func (w *worker) start(p place) (end func(), first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.working[p] {
		return nil, false
	}
	w.working[p] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.working, p)
	}, true
}

// handle handles one delivery of a job.
func (w *worker) handle(ctx context.Context, d runlog.JobDelivery) {
	job := d.Job()
	end, first := w.start(placeOf(job))
	if !first {
		// If the work on the original dies, the job is delivered again.
		return
	}
	defer end()
	failpoint.Hit(inference.Name, "received")
	stop := w.heartbeat(d)
	defer stop()
	began := w.cfg.Now()
	ctx, span := w.startJob(ctx, job, d.Redelivered())
	defer span.End()
	outcome, result := w.carryOut(ctx, d)
	describeJob(span, outcome, result)
	w.metrics.JobEnded(ctx, job.GetPurpose(), outcome, w.cfg.Now().Sub(began))
}

// carryOut brings a job to its end, and acknowledges it or puts it back. result is nil
// if there is none.
func (w *worker) carryOut(ctx context.Context, d runlog.JobDelivery) (outcome telemetry.JobOutcome, result *harnessv1.JobResult) {
	job := d.Job()
	logger := w.cfg.Logger.With("namespace", job.GetNamespace(), "run", job.GetRunId(), "job", job.GetKey(), "purpose", job.GetPurpose())
	stored, err := w.cfg.Log.BlobAs(ctx, runOf(job), job.GetKey())
	switch {
	case err != nil:
		return w.putBack(ctx, d, err, logger), nil
	case stored != nil:
		_ = d.Ack() // delivered again and dropped then
		return telemetry.JobRepeated, nil
	}
	result, err = w.infer(ctx, job, d.Redelivered())
	if err != nil {
		return w.putBack(ctx, d, err, logger), nil
	}
	failpoint.Hit(inference.Name, "answered")
	w.metrics.JobUsed(ctx, job.GetPurpose(), result.GetModel(), result.GetUsage())
	outcome, err = w.store(ctx, job, result, logger)
	if err != nil {
		return w.putBack(ctx, d, err, logger), nil
	}
	failpoint.Hit(inference.Name, "stored")
	_ = d.Ack()
	failpoint.Hit(inference.Name, "acked")
	return outcome, result
}

// putBack requests another delivery of a job: immediately if this worker stops.
func (w *worker) putBack(ctx context.Context, d runlog.JobDelivery, err error, logger *slog.Logger) telemetry.JobOutcome {
	if ctx.Err() != nil {
		_ = d.Nak(0)
		return telemetry.JobPutBack
	}
	logger.WarnContext(ctx, "job put back", "error", err)
	_ = d.Nak(putBackDelay)
	return telemetry.JobPutBack
}

// infer returns the result of a job. An error means that there is none: the worker
// stops, the log is away, or the call panicked.
func (w *worker) infer(ctx context.Context, job *harnessv1.Job, repeated bool) (result *harnessv1.JobResult, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		w.cfg.Logger.ErrorContext(ctx, "job panicked", "run", job.GetRunId(), "job", job.GetKey(), "panic", p, "stack", string(debug.Stack()))
		result, err = nil, fmt.Errorf("panic: %v", p)
		if n := w.panicked(placeOf(job)); n >= inference.MaxPanics {
			result, err = inference.Failure(job, fmt.Sprintf("the inference worker panicked %d times in this job: %v", n, p)), nil
		}
	}()
	if err := inference.Check(job); err != nil {
		return inference.Failure(job, err.Error()), nil
	}
	in, err := w.resolve(ctx, job)
	switch {
	case errors.Is(err, runlog.ErrUnavailable), ctx.Err() != nil:
		return nil, err
	case err != nil:
		return inference.Failure(job, err.Error()), nil
	}
	failpoint.Hit(inference.Name, "resolved")
	lost, err := w.lostCalls(ctx, job, in, repeated)
	switch {
	case errors.Is(err, runlog.ErrNotFound): // the run is gone, and the job with it
		return inference.Failure(job, err.Error()), nil
	case err != nil:
		return nil, err
	}
	result, err = w.call(ctx, job, in)
	if err != nil {
		return nil, err
	}
	lost.addTo(result)
	return result, nil
}

// panicked counts a panic of a job.
func (w *worker) panicked(p place) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.panics) >= maxPanics {
		clear(w.panics)
	}
	w.panics[p]++
	return w.panics[p]
}

// store stores a result, unless the job has one or its run is gone. While the log is
// away it keeps the result and tries again, until the worker stops.
func (w *worker) store(ctx context.Context, job *harnessv1.Job, result *harnessv1.JobResult, logger *slog.Logger) (telemetry.JobOutcome, error) {
	data, err := proto.Marshal(result)
	if err != nil {
		return "", fmt.Errorf("encode the result: %w", err)
	}
	for {
		stored, err := w.storeOnce(ctx, job, data)
		switch {
		case err == nil && !stored:
			return telemetry.JobRepeated, nil
		case err == nil && result.GetError() != "":
			return telemetry.JobFailed, nil
		case err == nil:
			return telemetry.JobAnswered, nil
		case errors.Is(err, runlog.ErrNotFound):
			return telemetry.JobGone, nil
		case !errors.Is(err, runlog.ErrUnavailable):
			// Another delivery would pay for another call and fail in the same way.
			logger.ErrorContext(ctx, "the result of a job cannot be stored", "error", err)
			return telemetry.JobFailed, nil
		}
		if !pause(ctx, storePause) {
			return "", err
		}
	}
}

// storeOnce continues when the worker is stopped.
func (w *worker) storeOnce(ctx context.Context, job *harnessv1.Job, data []byte) (stored bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return w.cfg.Log.PutBlobAs(ctx, runOf(job), job.GetFirstSequence(), job.GetKey(), data)
}

// heartbeat postpones the redelivery of a job until stop is called.
func (w *worker) heartbeat(d runlog.JobDelivery) (stop func()) {
	every := func() time.Duration { return runlog.Lapse(w.cfg.Log.AckWait()) } // the setting can change
	timer := time.NewTimer(every())
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				_ = d.InProgress() // a delivery that has expired is another worker's
				timer.Reset(every())
			}
		}
	}()
	return func() {
		close(done)
		<-finished
	}
}

// pause waits for d. It reports false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
