// Package jobs carries out what decisions ask of models. A decision names a JobRequest; the
// shell stores it as a job once, under its key, and observes its result. The role inference
// makes the call.
//
// Invariants:
//   - A job is stored once under its key, however often the decision is made.
//   - A job that cannot be made is observed as ended with an error: it never fails a decision.
//   - A job that no worker carries out has its whole time: workers that restart are back before it is over.
package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// Log is where jobs are stored.
type Log interface {
	runlog.JobCreator
	runlog.KeyedBlobReader
	runlog.JobEnds
	runlog.BlobWriter
}

// Config of an Observer.
type Config struct {
	// Executor names the decisions, for the failpoints of tests.
	Executor string
	// Log stores jobs. Nil: no job is made.
	Log Log
	// Available reports whether a worker carries out jobs. Nil: none ever does, and no job is made.
	Available func(ctx context.Context) bool
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Observer makes the observations of jobs. It may be used by many decisions.
type Observer struct {
	Ends Ends
	cfg  Config

	mu    sync.Mutex
	asked map[jobID]time.Time
}

// maxAsked bounds the jobs whose time is remembered. A full memory is emptied: the time of
// those jobs starts again.
const maxAsked = 16 << 10

// maxAnswer bounds the answer of a job, in bytes.
const maxAnswer = 64 << 10

func New(cfg Config) *Observer {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Observer{cfg: cfg, asked: map[jobID]time.Time{}}
}

// Listen has the ends of jobs reported to Ends until stop is called.
func (o *Observer) Listen() (stop func(), err error) {
	if o.cfg.Log == nil {
		return func() {}, nil
	}
	return o.cfg.Log.OnJobEnd(o.Ends.Ended)
}

// Observe returns how far a job is, and stores it if it is new. first is the sequence of the run's first record.
func (o *Observer) Observe(ctx context.Context, run runlog.Run, first uint64, r *harnessv1.JobRequest) (*harnessv1.Observation, error) {
	state, err := o.state(ctx, run, first, r)
	if err != nil {
		return nil, err
	}
	if state.GetEnded() {
		o.forget(jobID{run, r.GetKey()})
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Job{Job: state}}, nil
}

func (o *Observer) state(ctx context.Context, run runlog.Run, first uint64, r *harnessv1.JobRequest) (*harnessv1.JobState, error) {
	if o.cfg.Log == nil {
		return failed("calls of models that are no turns are not set up here"), nil
	}
	data, err := o.cfg.Log.BlobAs(ctx, run, r.GetKey())
	switch {
	case err != nil:
		return nil, err
	case data != nil:
		return ended(data), nil
	}
	id := jobID{run, r.GetKey()}
	asked, known := o.time(id)
	if o.cfg.Available == nil {
		return failed(noWorker), nil
	}
	if known {
		return o.waiting(ctx, run, r, asked)
	}
	if err := o.create(ctx, run, first, r); err != nil {
		if errors.Is(err, runlog.ErrTooLarge) || errors.Is(err, runlog.ErrNotFound) {
			return failed(content.Line(err.Error(), content.MaxPreview)), nil
		}
		return nil, err
	}
	return &harnessv1.JobState{Asked: timestamppb.New(o.remember(id))}, nil
}

// noWorker is why a job may not end.
const noWorker = "no worker makes calls of models that are no turns: start one with harness serve --roles inference"

// waiting returns the state of a job that has no result yet, with the usage of its calls so far: if its time ends
// first, nothing else counts them. A mesh without a worker may have one before the job's time is over.
func (o *Observer) waiting(ctx context.Context, run runlog.Run, r *harnessv1.JobRequest, asked time.Time) (*harnessv1.JobState, error) {
	state := &harnessv1.JobState{Asked: timestamppb.New(asked), Usage: &harnessv1.Usage{}}
	if !o.cfg.Available(ctx) {
		state.Error = noWorker
	} else {
		state.Usage.InputTokens = uint64(2*tokens.MessageOverhead + tokens.Count(r.GetModel(), r.GetSystem()) + tokens.Count(r.GetModel(), r.GetPrompt())) //nolint:gosec // counts
	}
	for n := uint64(2); ; n++ { // the calls of deliveries that were repeated
		data, err := o.cfg.Log.BlobAs(ctx, run, runlog.CallKey(r.GetKey(), n))
		if err != nil {
			return nil, err
		}
		call := &harnessv1.Usage{}
		if data == nil || proto.Unmarshal(data, call) != nil {
			return state, nil
		}
		runstate.SumUsage(state.Usage, call)
	}
}

// create stores the request and the job.
func (o *Observer) create(ctx context.Context, run runlog.Run, first uint64, r *harnessv1.JobRequest) error {
	request := &harnessv1.ModelRequest{Model: r.GetModel(), AnswerSchema: r.GetSchema(), Messages: []*harnessv1.Message{
		{Id: 1, Role: harnessv1.Role_ROLE_SYSTEM, Content: content.Inline(r.GetSystem())},
		{Id: 2, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(r.GetPrompt())},
	}}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return err
	}
	ref, err := o.cfg.Log.PutBlob(ctx, run, data)
	if err != nil {
		return err
	}
	failpoint.Hit(o.cfg.Executor, "request_stored")
	ref.Preview = "" // binary
	_, err = o.cfg.Log.CreateJob(ctx, &harnessv1.Job{
		Namespace: run.Namespace, RunId: run.ID, FirstSequence: first, Key: r.GetKey(), Purpose: r.GetPurpose(), Model: r.GetModel(), Request: ref,
		Timeout: r.GetTimeout(), MaxTries: r.GetMaxTries(), MaxOutputTokens: r.GetMaxOutputTokens(),
		Prompt:     r.GetPromptUsed(),
		CreateTime: timestamppb.New(o.cfg.Now()), Traceparent: runtrace.Traceparent(spans.Ref(ctx)),
	})
	failpoint.Hit(o.cfg.Executor, "job_created")
	return err
}

// ended reads the result of a job.
func ended(data []byte) *harnessv1.JobState {
	result := &harnessv1.JobResult{}
	if err := proto.Unmarshal(data, result); err != nil {
		return failed("the stored result is damaged")
	}
	state := &harnessv1.JobState{Ended: true, Text: result.GetText(), Error: result.GetError(), Usage: result.GetUsage(), Model: result.GetModel()}
	switch {
	case state.GetError() != "":
	case result.GetToolCalls() > 0 && state.GetText() == "":
		state.Error = "the model called a tool"
	case len(state.GetText()) > maxAnswer:
		state.Text, state.Error = "", "the answer is too long"
	}
	return state
}

func failed(why string) *harnessv1.JobState { return &harnessv1.JobState{Ended: true, Error: why} }

func (o *Observer) time(id jobID) (time.Time, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.asked[id]
	return t, ok
}

func (o *Observer) remember(id jobID) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) >= maxAsked {
		clear(o.asked)
	}
	now := o.cfg.Now()
	o.asked[id] = now
	return now
}

func (o *Observer) forget(id jobID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.asked, id)
}
