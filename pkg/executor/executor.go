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
//   - A worker postpones the redelivery only after a validated read has shown that the
//     newest record is still its own.
//   - An error or a panic of an executor is stored as a record. After MaxFailures of
//     them at one step the run fails as poison.
//   - A step that was in work when maxDeaths workers died within an hour, and that completed
//     nothing in between, parks its run as poison, and fails it in the end. A worker that
//     takes a step over asks whether the one before lives (runlog.Witness), and counts its
//     death in the journal, unless its last word was that it waits, or a host confirms that
//     what it has started is at work. A worker that puts a step back, that stops in order or
//     that lost the bus has not died.
//   - A record of a newer schema is left to a newer worker.
//   - A step that waits (Pure) has no slot of the worker, but heartbeats as any other. A
//     worker that stops puts it back immediately. Nothing is stored about a wait: the
//     next worker decides again.
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

// errRetry marks an error that is not the step's fault: something that the executor
// needs is unavailable. The step is put back, and the error does not count.
var errRetry = errors.New("unavailable")

// Retry marks err with errRetry.
func Retry(op string, err error) error { return fmt.Errorf("%s: %w: %w", op, errRetry, err) }

// Bounds of a snapshot.
const (
	// maxSnapshot is the size in encoded bytes above which a run fails.
	maxSnapshot = 64 << 10
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

// Log are the methods of a run log that the loop calls.
type Log interface {
	runlog.Appender
	runlog.Reader
	runlog.Viewer
	runlog.BlobReader
	runlog.BlobWriter
	runlog.StepConsumer
	runlog.Redelivery
	runlog.TimerSetter
	runlog.InboxReader
	runlog.PokeFeed
}

// Config configures a loop.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// Instance is the name of this process; see NewInstance.
	Instance string
	// Concurrency bounds the steps in work at the same time, apart from those that wait
	// and the runlog.Resumed(Concurrency) that continue after a wait. Default 256.
	Concurrency int
	// Room bounds the memory of the steps in work at the same time. The executors of a
	// process share it. A step that waits for a change is not in it. Nil: no bound.
	Room *Room
	// Poll is how long a step waits without a report before it is decided again, give or
	// take a quarter: reports may be lost. Default 5 s.
	Poll time.Duration
	// Drain is how long work may continue after ctx has ended. Then it is cancelled and
	// its steps are put back. Default 0.
	Drain time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Tracer starts the spans of runs that are traced; nil starts none.
	Tracer trace.Tracer
	// Witness tells workers that live from those that died. Nil: deaths are not counted, and no
	// words are published.
	Witness runlog.Witness
	// Metrics counts the results of steps; nil counts nothing.
	Metrics *telemetry.Metrics
}

func (c Config) withDefaults() Config {
	if c.Concurrency <= 0 {
		c.Concurrency = 256
	}
	if c.Poll <= 0 {
		c.Poll = 5 * time.Second
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
