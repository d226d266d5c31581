package target

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// RunsPage is the number of runs that one call lists.
const RunsPage = 1000

// NewestRun is the handle of the newest run of a namespace, unless a run has this id.
const NewestRun = "last"

// generatedPrefix is the prefix of generated ids, which may be left out of a handle.
const generatedPrefix = "r-"

// Connect returns a session and replaces a prefix of the run's id by the id.
func (o *OneRun) Connect(ctx context.Context, a *console.Console, need backend.Need, keep ...string) (*backend.Session, error) {
	first := need
	if need == backend.Drive {
		first = backend.Read // a mesh interrupts the runs that it does not keep, so the id comes first
	}
	session, err := o.Target.Connect(ctx, a, first)
	if err != nil {
		return nil, err
	}
	given := o.RunID
	if o.RunID, err = o.Resolve(ctx, session, given); err != nil {
		Disconnect(ctx, a, session)
		return nil, err
	}
	if need == first || session.Working {
		return session, nil
	}
	Disconnect(ctx, a, session)
	for i := range keep {
		if keep[i] == given {
			keep[i] = o.RunID
		}
	}
	return o.Target.Connect(ctx, a, need, keep...)
}

// Resolve returns the id of the run that a handle names: the id, or a prefix that only one
// run of the namespace has, or last for the newest one. A handle without a run is returned unchanged, so that the
// request that follows reports it.
func (t *Target) Resolve(ctx context.Context, s *backend.Session, handle string) (string, error) {
	_, err := s.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: t.Namespace, RunId: handle})
	if status.Code(err) != codes.NotFound {
		return handle, nil
	}
	if handle == NewestRun {
		for run, err := range t.Listed(ctx, s, nil, false, 1) {
			if err != nil {
				break
			}
			return run.GetRunId(), nil
		}
		return handle, nil
	}
	var fits []string
	for run, err := range t.Listed(ctx, s, nil, true, RunsPage) {
		if err != nil {
			return handle, nil // the caller may read this run, and not the list
		}
		if id := run.GetRunId(); strings.HasPrefix(id, handle) || strings.HasPrefix(id, generatedPrefix+handle) {
			fits = append(fits, id)
		}
	}
	switch len(fits) {
	case 0:
		return handle, nil
	case 1:
		return fits[0], nil
	}
	return "", ambiguous(handle, fits)
}

// namedRuns is the number of runs that an error names.
const namedRuns = 3

// ambiguous returns the error for a prefix that several runs have.
func ambiguous(handle string, fits []string) error {
	named, more := fits, ""
	if len(fits) > namedRuns {
		named, more = fits[:namedRuns], ", ..."
	}
	return fmt.Errorf("RUN: %q is the beginning of %d ids (%s%s): add letters", handle, len(fits), strings.Join(named, ", "), more)
}

// Listed iterates over the runs of the namespace, newest first, and stops after an error. all:
// those of sub-agents too.
func (t *Target) Listed(ctx context.Context, s *backend.Session, statuses []harnessv1.RunStatus, all bool, page uint32) func(yield func(*harnessv1.Run, error) bool) {
	return func(yield func(*harnessv1.Run, error) bool) {
		request := &harnessv1.ListRunsRequest{Namespace: t.Namespace, Statuses: statuses, PageSize: page, All: all}
		for {
			answer, err := s.Client.ListRuns(ctx, request)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, run := range answer.GetRuns() {
				if !yield(run, nil) {
					return
				}
			}
			if request.PageToken = answer.GetNextPageToken(); request.GetPageToken() == "" {
				return
			}
		}
	}
}
