package calls

import (
	"context"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// Target is a call, or a check, to cancel.
type Target struct{ ID, Key string }

// Cancellation is the cancellation of calls that Cancel has begun.
type Cancellation struct {
	calls *Calls
	plan  []cancellation
}

// cancellation is the plan for a target.
type cancellation struct {
	Target
	action toolhost.Cancellation
	// fate is stored in the target's tombstone at the end.
	fate toolhost.Fate
	// store is true if the tombstone is not in the ledger yet.
	store bool
	// call is the running call to wait for.
	call *call
}

// Cancel plans the cancellation of all calls at the same time and stops those that
// are running. After it, none of them can start.
func (s *Calls) Cancel(calls []Target, facts toolhost.Call) (Cancellation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	targets, err := s.withChecks(calls)
	if err != nil {
		return Cancellation{}, err
	}
	plan := make([]cancellation, len(targets))
	for i, t := range targets {
		known, err := s.status(t.Key)
		if err != nil {
			return Cancellation{}, err
		}
		_, pending := s.entries.Pending(t.Key)
		c := cancellation{
			Target: t, action: toolhost.Cancel(known.State, known.Fate, facts),
			fate: known.Fate, store: pending, call: known.call,
		}
		switch c.action {
		case toolhost.Kill:
			c.fate = toolhost.Killed
		case toolhost.Forbid:
			c.fate, c.store = toolhost.Unstarted, true
		case toolhost.ForbidUnknown:
			c.fate, c.store = toolhost.Unknown, true
		case toolhost.KeepResult, toolhost.KeepTombstone:
		}
		plan[i] = c
	}
	for _, c := range plan {
		switch {
		case c.action == toolhost.Kill:
			c.call.stop(errCancelled)
		case c.store:
			s.entries.SetPending(c.Key, c.fate)
		}
	}
	return Cancellation{calls: s, plan: plan}, nil
}

// withChecks replaces the targets that are checks by these. If a call has the same id as
// a check, it returns both. The caller has locked mu.
func (s *Calls) withChecks(calls []Target) ([]Target, error) {
	targets := make([]Target, 0, len(calls))
	for _, t := range calls {
		check, err := s.status(ledger.CheckKey(t.Key))
		if err != nil {
			return nil, err
		}
		if check.State != toolhost.Absent {
			targets = append(targets, Target{ID: t.ID, Key: ledger.CheckKey(t.Key)})
			call, err := s.status(t.Key)
			if err != nil {
				return nil, err
			}
			if call.State == toolhost.Absent {
				continue
			}
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// NeedsFormer reports whether processes of earlier hosts must be dead before Finish.
func (c Cancellation) NeedsFormer() bool {
	return slices.ContainsFunc(c.plan, func(c cancellation) bool { return c.store && c.fate == toolhost.Unknown })
}

// Finish returns when all calls are dead and their tombstones are stored, and adds each to the
// list of the response for its end. When ctx ends first, the killing continues.
func (c Cancellation) Finish(ctx context.Context, resp *harnessv1.CancelToolsResponse) error {
	var failure error
	for _, part := range c.plan {
		finished, err := c.calls.finish(ctx, part)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failure = err
		case finished:
			resp.Finished = append(resp.Finished, part.ID)
		case part.fate == toolhost.Killed:
			resp.Killed = append(resp.Killed, part.ID)
			if part.call != nil && part.call.killed != "" {
				if resp.KilledResults == nil {
					resp.KilledResults = map[string]string{}
				}
				resp.KilledResults[part.ID] = part.call.killed
			}
		case part.fate == toolhost.Unknown:
			resp.Unknown = append(resp.Unknown, part.ID)
		}
	}
	return failure
}

// finish returns when a call is dead and its tombstone is stored. It reports
// whether the call had finished instead.
func (s *Calls) finish(ctx context.Context, c cancellation) (finished bool, err error) {
	switch {
	case c.action == toolhost.KeepResult:
		return true, nil
	case c.action == toolhost.Kill:
		select {
		case <-c.call.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if c.call.err != nil {
			return false, c.call.err
		}
		if c.call.resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
			return true, nil
		}
		if _, pending := s.entries.Pending(c.Key); pending { // storing it failed before
			err = s.entries.StoreTombstone(c.Key, c.fate)
		}
	case c.store:
		err = s.entries.StoreTombstone(c.Key, c.fate)
	default:
		return false, nil // stored before
	}
	if err == nil {
		failpoint.Hit(role, "cancelled")
	}
	return false, err
}
