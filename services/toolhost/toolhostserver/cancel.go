package toolhostserver

import (
	"context"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// CancelTools kills the calls that run, forbids those that did not begin, and
// returns when nothing of them is left, also of those that an earlier host had
// begun. When ctx ends first, the killing goes on; the same request can be sent
// again, and its answer is the same.
func (s *Server) CancelTools(ctx context.Context, req *harnessv1.CancelToolsRequest) (*harnessv1.CancelToolsResponse, error) {
	calls := make([]target, len(req.GetCallIds()))
	for i, id := range req.GetCallIds() {
		key, err := callKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence(), id)
		if err != nil {
			return nil, err
		}
		calls[i] = target{id: id, key: key}
	}
	if len(calls) == 0 {
		return nil, fault.Invalid("call_ids", "names no call")
	}
	plan, err := s.revoke(calls, toolhost.Call{ForeignLedger: s.foreign(req.GetLedgerId())})
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(plan, func(r revocation) bool { return r.store && r.fate == toolhost.Unknown }) {
		if err := s.endFormerLife(); err != nil {
			return nil, err
		}
	}
	resp := &harnessv1.CancelToolsResponse{}
	var failure error
	for _, r := range plan {
		finished, err := s.carryOut(ctx, r.key, r)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failure = err
		case finished:
			resp.Finished = append(resp.Finished, r.id)
		case r.fate == toolhost.Killed:
			resp.Killed = append(resp.Killed, r.id)
		case r.fate == toolhost.Unknown:
			resp.Unknown = append(resp.Unknown, r.id)
		}
	}
	if failure != nil {
		return nil, failure
	}
	return resp, nil
}

// target is a call, or a check, that is to be cancelled.
type target struct{ id, key string }

// revocation is what happens to one of them.
type revocation struct {
	target
	what toolhost.Revocation
	// fate is what its tombstone says in the end.
	fate toolhost.Fate
	// store: the tombstone is not in the ledger yet.
	store bool
	// call is the one to wait for.
	call *call
}

// revoke decides for all calls at one moment and stops those that run. From
// here on none of them can start.
func (s *Server) revoke(calls []target, facts toolhost.Call) ([]revocation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	targets, err := s.withChecks(calls)
	if err != nil {
		return nil, err
	}
	plan := make([]revocation, len(targets))
	for i, t := range targets {
		k, err := s.look(t.key)
		if err != nil {
			return nil, err
		}
		_, waits := s.buried[t.key]
		r := revocation{target: t, what: toolhost.Revoke(k.state, k.fate, facts), fate: k.fate, store: waits, call: k.call}
		switch r.what {
		case toolhost.Kill:
			r.fate = toolhost.Killed
		case toolhost.Bury:
			r.fate, r.store = toolhost.Unstarted, true
		case toolhost.BuryUnknown:
			r.fate, r.store = toolhost.Unknown, true
		}
		plan[i] = r
	}
	for _, r := range plan {
		switch {
		case r.what == toolhost.Kill:
			r.call.stop(errCancelled)
		case r.store:
			s.buried[r.key] = r.fate
		}
	}
	return plan, nil
}

// carryOut returns when a call is dead and buried, or says that it had finished.
func (s *Server) carryOut(ctx context.Context, key string, r revocation) (finished bool, err error) {
	switch {
	case r.what == toolhost.Finished:
		return true, nil
	case r.what == toolhost.Kill:
		select {
		case <-r.call.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if r.call.err != nil {
			return false, r.call.err
		}
		if r.call.resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
			return true, nil
		}
		s.mu.Lock()
		_, waits := s.buried[key]
		s.mu.Unlock()
		if waits { // it could not be stored
			err = s.bury(key, r.fate)
		}
	case r.store:
		err = s.bury(key, r.fate)
	default:
		return false, nil // buried before
	}
	if err == nil {
		failpoint.Hit(role, "cancelled")
	}
	return false, err
}

// bury stores a tombstone. When that fails it holds in this process at least.
func (s *Server) bury(key string, f toolhost.Fate) error {
	if err := s.ledger.bury(key, f); err != nil {
		s.log.Error("a tombstone could not be stored", "error", err)
		return unavailable("the ledger cannot be written; the calls are cancelled only until this host ends", err)
	}
	s.mu.Lock()
	delete(s.buried, key)
	s.mu.Unlock()
	return nil
}

// endFormerLife returns when nothing is left of what earlier hosts at this place
// or on this ledger had started.
func (s *Server) endFormerLife() error {
	if left := awaitFormerLife(s.life.former); left > 0 {
		s.log.Error("commands of an earlier tool host could not be killed", "processes", left, "ledger", s.ledger.id)
		return unavailable("commands of an earlier tool host could not be killed yet; send the request again", nil)
	}
	return nil
}
