// Package calls admits the calls and checks of a host, runs each once, and cancels them.
//
// A call is an entry of the ledger, identified by its key. These promises hold, also over crashes:
//
//   - A call that is not idempotent has its effect at most once: its mark is stored before its
//     job executes, its result before it is returned. A mark of an earlier host is UNKNOWN.
//   - A second request for a call joins the running one or gets its result. The end of a request
//     never ends the call.
//   - After Cancel has returned, none of the calls can start. After Finish has, nothing of them runs,
//     and their tombstones are stored.
//   - A check that was cancelled before it began does not start: an unknown id in a cancel request
//     can mean a call or a check.
//
// What runs is a Job of the host. Package calls decides with package toolhost, and knows neither
// tools nor workspaces. Errors are UNAVAILABLE: the ledger cannot be read or written, or the host
// drains or closes; with the reason NOT_STARTED nothing ran.
package calls

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
)

// role is the name of the tool host at failpoints.
const role = workflow.ToolHost

// Causes for stopping a call.
var (
	errCancelled = errors.New("the call was cancelled")
	errClosing   = toolhost.ErrHostCloses
	errTimeout   = errors.New("the call took too long")
)

// Calls are the calls of a host. Many goroutines may use it.
type Calls struct {
	entries *ledger.Entries
	places  *places.Places
	log     *slog.Logger

	// running counts the goroutines of calls.
	running sync.WaitGroup
	// closed ends what runs detached.
	closed chan struct{}

	// mu guards the fields below. It is not locked during writes or calls.
	mu sync.Mutex
	// draining: no call starts. closing: no request succeeds.
	draining, closing bool
	// calls that are running in this process.
	calls map[string]*call
}

// New returns Calls over the entries of a ledger, which compare the guarded places of workspaces.
func New(entries *ledger.Entries, places *places.Places, log *slog.Logger) *Calls {
	return &Calls{entries: entries, places: places, log: log, closed: make(chan struct{}), calls: make(map[string]*call)}
}

// Job is a call that a request wants to run.
type Job struct {
	// Keys of the call and of its run in the ledger.
	Key, Run string
	// For the log.
	Namespace, RunID, ID string

	// Prepare prepares the workspace when the call begins.
	Prepare func(ctx context.Context, workspace string)
	// Watch starts to guard the repositories of the workspace; nil for a call that writes
	// nothing.
	Watch func(workspace string) (*guard.Watch, error)
	// Pending returns what processes of the run that outlive calls have changed since the last result: what git
	// runs programs by, and guarded places. Nil: there are none.
	Pending func() (note, changed string)
	// Restore puts back the guarded places that the call changes.
	Restore bool
	// Workspace of the call.
	Workspace string

	Facts toolhost.Call
	// Call describes the call of a tool; nil for a job that is none.
	Call *harnessv1.LedgerCall
	// Numbered is true if the request has Known and KnownCalls, so that the entry of the call is numbered
	// and the others are compared. Known is the number of the newest entry that the log of the run knows,
	// KnownCalls are ids of calls that it knows and that may have later entries.
	Numbered   bool
	Known      uint64
	KnownCalls []string
	// Compared is true if the other entries that are later than Known are to have ended first.
	Compared bool
	// Reject returns the response to a call that must not run, nil for others.
	Reject func() ledger.Response
	// CommandLine is the command line of a job that runs one; empty for others.
	CommandLine string
	// Output has the output of its command.
	Output *Output
	// Execute runs the call.
	Execute func(ctx context.Context, w *guard.Watch) Effect
}

// Effect is the effect of a job.
type Effect struct {
	// Response is not used if Interrupted is set and the call was cancelled.
	Response ledger.Response
	// Interrupted reports that the call was stopped before its end.
	Interrupted bool
	// Changed has the changed paths, relative to the workspace.
	Changed []string
}

// call is a job that is running in this process.
type call struct {
	*Job
	// stop interrupts the job; the first cause counts.
	stop context.CancelCauseFunc
	// done is closed when nothing of the call is running and its end is stored. resp
	// and err are set before.
	done chan struct{}
	resp ledger.Response
	err  error
	// killed is what a cancelled call had returned by then; set before done.
	killed string
}

// status has the entry of a call, and the call if it runs.
type status struct {
	ledger.Entry
	// call is the Running call.
	call *call
}

// status returns the status of a call. The caller has locked mu.
func (s *Calls) status(key string) (status, error) {
	if s.closing {
		return status{}, toolhost.Unavailable(toolhost.Closing, nil)
	}
	if f, pending := s.entries.Pending(key); pending {
		return status{Entry: ledger.Entry{State: toolhost.Cancelled, Fate: f}}, nil
	}
	if c := s.calls[key]; c != nil {
		return status{Entry: ledger.Entry{State: toolhost.Running}, call: c}, nil
	}
	stored, err := s.entries.ReadEnd(key)
	return status{Entry: stored}, err
}

// isOther reports whether this process runs, or has run, another call under the key of a job.
func (s status) isOther(j *Job) bool {
	if s.call != nil {
		return toolhost.IsOther(s.call.Call, j.Call)
	}
	return toolhost.IsOther(s.Entry.Call, j.Call)
}

// statusToStart returns the status of a call or check that a request wants to start. A
// check that was cancelled before it began has a call's tombstone, because an
// unknown id in a cancel request can mean either. The caller has locked mu.
func (s *Calls) statusToStart(key string) (status, error) {
	known, err := s.status(key)
	if err != nil || known.State != toolhost.Absent || !ledger.IsCheck(key) {
		return known, err
	}
	if call, err := s.status(ledger.CallOfCheck(key)); err != nil || call.State == toolhost.Cancelled {
		return call, err
	}
	return status{}, nil
}

// noResult returns the response to a call that has no result.
func noResult(key string, o harnessv1.ToolOutcome, duration time.Duration) ledger.Response {
	if ledger.IsCheck(key) {
		return &harnessv1.CheckCommandResponse{Outcome: o}
	}
	resp := &harnessv1.ExecuteToolResponse{Outcome: o}
	if o == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		resp.Duration = durationpb.New(duration)
	}
	return resp
}
