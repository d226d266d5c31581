package toolhostserver

import (
	"context"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// CancelTools kills the running calls, forbids those that did not begin, and returns when
// no process of them is left, including those that an earlier host started. When ctx ends
// first, the killing continues. The same request can be sent again and has the same
// response.
func (s *Server) CancelTools(ctx context.Context, req *harnessv1.CancelToolsRequest) (*harnessv1.CancelToolsResponse, error) {
	calls := make([]target, len(req.GetCallIds()))
	if len(calls) == 0 && !req.GetBackground() && !req.GetServers() {
		return nil, fault.Invalid("call_ids", "must have at least one call, unless background or servers is set")
	}
	run, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	for i, id := range req.GetCallIds() {
		if err := ledger.CheckName("call_id", id); err != nil {
			return nil, err
		}
		calls[i] = target{id: id, key: ledger.CallKey(run, id)}
	}
	facts := toolhost.Call{ForeignLedger: s.isForeign(req.GetLedgerId())}
	plan, err := s.startCancel(calls, facts)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(plan, func(c cancellation) bool { return c.store && c.fate == toolhost.Unknown }) {
		if err := s.former.kill(); err != nil {
			return nil, err
		}
	}
	if ids := req.GetCallIds(); len(ids) > 0 {
		s.servers.EndQuestions(run, ids...)
	}
	resp := &harnessv1.CancelToolsResponse{}
	var failure error
	for _, c := range plan {
		finished, err := s.finishCancel(ctx, c)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failure = err
		case finished:
			resp.Finished = append(resp.Finished, c.id)
		case c.fate == toolhost.Killed:
			resp.Killed = append(resp.Killed, c.id)
		case c.fate == toolhost.Unknown:
			resp.Unknown = append(resp.Unknown, c.id)
		}
	}
	if failure != nil {
		return nil, failure
	}
	if req.GetBackground() { // last: a call can start one until it is cancelled
		s.servers.EndQuestions(run)
		resp.Background, err = s.backgrounds.Kill(ctx, run, facts.ForeignLedger)
	}
	if req.GetServers() {
		s.servers.EndRun(run)
	}
	return resp, err
}

// target is a call, or a check, to cancel.
type target struct{ id, key string }

// cancellation is the plan for a target.
type cancellation struct {
	target
	action toolhost.Cancellation
	// fate is stored in the target's tombstone at the end.
	fate toolhost.Fate
	// store is true if the tombstone is not in the ledger yet.
	store bool
	// call is the running call to wait for.
	call *call
}

// startCancel plans the cancellation of all calls at the same time and stops those that
// are running. After it, none of them can start.
func (s *Server) startCancel(calls []target, facts toolhost.Call) ([]cancellation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	targets, err := s.withChecks(calls)
	if err != nil {
		return nil, err
	}
	plan := make([]cancellation, len(targets))
	for i, t := range targets {
		known, err := s.status(t.key)
		if err != nil {
			return nil, err
		}
		_, pending := s.ledger.Pending(t.key)
		c := cancellation{
			target: t, action: toolhost.Cancel(known.State, known.Fate, facts),
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
			s.ledger.SetPending(c.key, c.fate)
		}
	}
	return plan, nil
}

// finishCancel returns when a call is dead and its tombstone is stored. It reports
// whether the call had finished instead.
func (s *Server) finishCancel(ctx context.Context, c cancellation) (finished bool, err error) {
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
		if _, pending := s.ledger.Pending(c.key); pending { // storing it failed before
			err = s.ledger.StoreTombstone(c.key, c.fate)
		}
	case c.store:
		err = s.ledger.StoreTombstone(c.key, c.fate)
	default:
		return false, nil // stored before
	}
	if err == nil {
		failpoint.Hit(role, "cancelled")
	}
	return false, err
}
