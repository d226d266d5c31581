package cli

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// runsPage is the number of runs that one call lists.
const runsPage = 1000

// newestRun is the handle of the newest run of a namespace, unless a run has this id.
const newestRun = "last"

// generatedPrefix is the prefix of generated ids, which may be left out of a handle.
const generatedPrefix = "r-"

// connect returns a session and replaces a prefix of the run's id by the id.
func (o *oneRun) connect(ctx context.Context, a *app, need backend.Need, keep ...string) (*backend.Session, error) {
	first := need
	if need == backend.Drive {
		first = backend.Read // a mesh interrupts the runs that it does not keep, so the id comes first
	}
	session, err := o.target.connect(ctx, a, first)
	if err != nil {
		return nil, err
	}
	given := o.RunID
	if o.RunID, err = o.resolve(ctx, session, given); err != nil {
		disconnect(ctx, a, session)
		return nil, err
	}
	if need == first || session.Working {
		return session, nil
	}
	disconnect(ctx, a, session)
	for i := range keep {
		if keep[i] == given {
			keep[i] = o.RunID
		}
	}
	return o.target.connect(ctx, a, need, keep...)
}

// resolve returns the id of the run that a handle names: the id, or a prefix that only one
// run of the namespace has, or last for the newest one. A handle without a run is returned unchanged, so that the
// request that follows reports it.
func (t *target) resolve(ctx context.Context, s *backend.Session, handle string) (string, error) {
	_, err := s.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: t.Namespace, RunId: handle})
	if status.Code(err) != codes.NotFound {
		return handle, nil
	}
	if handle == newestRun {
		for run, err := range t.listed(ctx, s, nil, false, 1) {
			if err != nil {
				break
			}
			return run.GetRunId(), nil
		}
		return handle, nil
	}
	var fits []string
	for run, err := range t.listed(ctx, s, nil, true, runsPage) {
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

// listed iterates over the runs of the namespace, newest first, and stops after an error. all:
// those of sub-agents too.
func (t *target) listed(ctx context.Context, s *backend.Session, statuses []harnessv1.RunStatus, all bool, page uint32) func(yield func(*harnessv1.Run, error) bool) {
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
