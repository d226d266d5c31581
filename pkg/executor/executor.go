// Package executor is the one loop that every executor of the mesh runs in:
// receive a step, load what it needs, execute, append fenced, acknowledge.
//
// # Rules
//
//   - A step is acknowledged only when a newer Step of its run is stored.
//   - A first delivery is executed without a read: the fence decides. A
//     redelivery reads first, and is dropped when a newer Step exists.
//   - A worker that is fenced off falls silent: it neither acknowledges nor
//     asks for the step again, because the step is someone else's now.
//   - A worker holds off redelivery only after a validated view has shown that
//     the newest record is still its own.
//   - An error or a panic of an executor is a record. After MaxFailures of them
//     at one step the run is failed as poison, visibly. The death of a worker
//     does not count.
//   - A record of a newer schema is left to a newer worker.
package executor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// MaxFailures is the number of errors at one step after which a run is failed.
const MaxFailures = 5

// ErrRetry marks an error that says nothing against the step: something that the
// executor needs cannot be reached now. The step is put back and the error is
// not counted.
var ErrRetry = errors.New("cannot be reached now")

// Retry marks err with ErrRetry.
func Retry(op string, err error) error { return fmt.Errorf("%s: %w: %w", op, ErrRetry, err) }

// Bounds of a snapshot.
const (
	// MaxSnapshot fails a run, in encoded bytes.
	MaxSnapshot = 64 << 10
	// spillSnapshot moves the largest texts of a snapshot to blobs.
	spillSnapshot = 16 << 10
)

// Executor does the work of one place in a workflow.
type Executor interface {
	// Name is the name that steps are addressed to.
	Name() string
	// Execute turns a task into what is to be committed. It may append to the
	// run's journal through the task, and must then be able to go on from a
	// journal that it finds. Canceled contexts end it early.
	Execute(ctx context.Context, task *Task) (*harnessv1.Outcome, error)
}

// Log is what the loop needs of a run log.
type Log interface {
	runlog.Appender
	runlog.Reader
	runlog.Viewer
	runlog.BlobReader
	runlog.BlobWriter
	runlog.StepConsumer
	runlog.Redelivery
	runlog.TimerSetter
}

// Config of a loop.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// Instance names this process; see NewInstance.
	Instance string
	// Concurrency bounds the steps in work at once. Default 256.
	Concurrency int
	// Drain is how long work may go on after the loop was told to stop; then it
	// is broken off and its steps are put back. Default 0.
	Drain time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Tracer makes the spans of runs that are traced; nil makes none.
	Tracer trace.Tracer
	// Metrics count what becomes of steps; nil counts nothing.
	Metrics *telemetry.Metrics
}

func (c Config) withDefaults() Config {
	if c.Concurrency <= 0 {
		c.Concurrency = 256
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// NewInstance makes a name for this process that no other process has or had:
// host, pid and eight random hexadecimal digits.
func NewInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(b[:]))
}

// Decide is the pure decision of an executor.
type Decide func(*harnessv1.StepInput) (*harnessv1.StepOutput, error)

// Observe fetches what a decision has to know, under a key.
type Observe func(ctx context.Context, task *Task, key string) (*harnessv1.Observation, error)

// Pure is an executor around a pure decision: it decides, fetches what the
// decision needs once under its key, and decides again.
type Pure struct {
	ExecutorName string
	Decide       Decide
	Observe      Observe
	// Bind makes the decision and what it observes with for one task, where they
	// differ by run. It is called in place of Decide and Observe when it is set.
	Bind func(ctx context.Context, task *Task) (Decide, ObserveNeeds, error)
}

// ObserveNeeds fetches what a decision has to know, all of it or the first part: the
// decision asks again for what it still lacks.
type ObserveNeeds func(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error)

// Name is the executor's name.
func (p *Pure) Name() string { return p.ExecutorName }

// maxRounds bounds the rounds of needs; a decision that asks on has a fault.
const maxRounds = 2048

// Execute decides until there is an outcome.
func (p *Pure) Execute(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
	decide, observe := p.Decide, p.each(task)
	if p.Bind != nil {
		var err error
		if decide, observe, err = p.Bind(ctx, task); err != nil {
			return nil, err
		}
	}
	in := task.Input()
	for range maxRounds {
		out, err := decide(in)
		if err != nil {
			return nil, err
		}
		if outcome := out.GetOutcome(); outcome != nil {
			return outcome, nil
		}
		seen, err := observe(ctx, out.GetNeeds())
		if err != nil {
			return nil, err
		}
		in.Observed = append(in.Observed, seen...)
	}
	return nil, fmt.Errorf("%s asked %d times for more", p.ExecutorName, maxRounds)
}

// each observes one key after the other.
func (p *Pure) each(task *Task) ObserveNeeds {
	return func(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
		var seen []*harnessv1.Observation
		for _, key := range needs.GetKeys() {
			if p.Observe == nil {
				return nil, fmt.Errorf("%s needs %q and nothing can be observed here", p.ExecutorName, key)
			}
			observation, err := p.Observe(ctx, task, key)
			if err != nil {
				return nil, fmt.Errorf("observe %s: %w", key, err)
			}
			seen = append(seen, observation)
		}
		return seen, nil
	}
}
