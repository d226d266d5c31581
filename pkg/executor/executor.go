// Package executor has the loop that every executor of the mesh runs in: receive a
// step, read what it needs, execute it, append the outcome with a fence, acknowledge
// the step.
//
// # Rules
//
//   - A step is acknowledged only when a newer Step of its run is stored.
//   - The first delivery of a step is executed without a read: the fence decides. A
//     redelivery reads first, and is dropped if a newer Step exists.
//   - A worker that is fenced off stops without a reply: it neither acknowledges the
//     step nor requests its redelivery, because another worker has it.
//   - A worker postpones the redelivery only after a validated view has shown that the
//     newest record is still its own.
//   - An error or a panic of an executor is stored as a record. After MaxFailures of
//     them at one step the run fails as poison. The death of a worker does not count.
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

// ErrRetry marks an error that is not the step's fault: something that the executor
// needs is unavailable. The step is put back, and the error does not count.
var ErrRetry = errors.New("unavailable")

// Retry marks err with ErrRetry.
func Retry(op string, err error) error { return fmt.Errorf("%s: %w: %w", op, ErrRetry, err) }

// Bounds of a snapshot.
const (
	// MaxSnapshot is the size in encoded bytes above which a run fails.
	MaxSnapshot = 64 << 10
	// spillSnapshot is the size above which the largest texts of a snapshot move to
	// blobs.
	spillSnapshot = 16 << 10
)

// Executor does the work of one place in a workflow.
type Executor interface {
	// Name returns the name that steps are addressed to.
	Name() string
	// Execute returns the outcome of a task, which is then committed. It may append to
	// the run's journal through the task, and must then be able to continue from a
	// journal that another worker wrote. It ends early when ctx ends.
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

// Config configures a loop.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// Instance is the name of this process; see NewInstance.
	Instance string
	// Concurrency bounds the steps in work at the same time. Default 256.
	Concurrency int
	// Drain is how long work may continue after ctx has ended. Then it is cancelled and
	// its steps are put back. Default 0.
	Drain time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Tracer starts the spans of runs that are traced; nil starts none.
	Tracer trace.Tracer
	// Metrics counts the results of steps; nil counts nothing.
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

// NewInstance returns a name for this process that no other process has or had: host,
// pid and eight random hexadecimal digits.
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

// Observe fetches what a decision needs, by key.
type Observe func(ctx context.Context, task *Task, key string) (*harnessv1.Observation, error)

// Pure is an executor around a pure decision. It decides, fetches each key that the
// decision needs once, and decides again.
type Pure struct {
	ExecutorName string
	Decide       Decide
	Observe      Observe
	// Bind returns the decision and its observer for one task, if they depend on the
	// run. If set, it replaces Decide and Observe.
	Bind func(ctx context.Context, task *Task) (Decide, ObserveNeeds, error)
}

// ObserveNeeds fetches what a decision needs, or the first part of it. The decision
// then requests the rest.
type ObserveNeeds func(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error)

// Name returns the executor's name.
func (p *Pure) Name() string { return p.ExecutorName }

// maxRounds bounds the rounds of needs of one decision.
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
	return nil, fmt.Errorf("%s requested observations %d times without an outcome", p.ExecutorName, maxRounds)
}

// each returns an observer that fetches one key after the other.
func (p *Pure) each(task *Task) ObserveNeeds {
	return func(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
		var seen []*harnessv1.Observation
		for _, key := range needs.GetKeys() {
			if p.Observe == nil {
				return nil, fmt.Errorf("%s needs %q, and this executor observes nothing", p.ExecutorName, key)
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
