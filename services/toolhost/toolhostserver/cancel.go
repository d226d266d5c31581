package toolhostserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// CancelTools kills the calls that run, forbids those that did not begin, and
// returns when nothing of them is left. When ctx ends first, the killing goes
// on; the same request can be sent again.
func (s *Server) CancelTools(ctx context.Context, req *harnessv1.CancelToolsRequest) (*harnessv1.CancelToolsResponse, error) {
	keys := make([]string, len(req.GetCallIds()))
	for i, id := range req.GetCallIds() {
		var err error
		if keys[i], err = callKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence(), id); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return nil, fault.Invalid("call_ids", "names no call")
	}
	plan, err := s.revoke(keys)
	if err != nil {
		return nil, err
	}
	resp := &harnessv1.CancelToolsResponse{}
	var failure error
	for i, key := range keys {
		id := req.GetCallIds()[i]
		switch plan[i].what {
		case toolhost.Finished:
			resp.Finished = append(resp.Finished, id)
		case toolhost.Bury:
			if err := s.bury(key); err != nil {
				failure = err
			}
		case toolhost.Kill:
			select {
			case <-plan[i].call.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			switch c := plan[i].call; {
			case c.resp.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED:
				resp.Killed = append(resp.Killed, id)
			case c.resp != nil:
				resp.Finished = append(resp.Finished, id)
			default:
				failure = c.err
			}
		}
	}
	if failure != nil {
		return nil, failure
	}
	return resp, nil
}

// revocation is what happens to one call.
type revocation struct {
	what toolhost.Revocation
	call *call
}

// revoke decides for all calls at one moment and stops those that run. From
// here on none of them can start.
func (s *Server) revoke(keys []string) ([]revocation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plan := make([]revocation, len(keys))
	for i, key := range keys {
		state, c, _, err := s.look(key)
		if err != nil {
			return nil, err
		}
		plan[i] = revocation{toolhost.Revoke(state), c}
		if s.buried[key] {
			plan[i].what = toolhost.Bury // its tombstone is not stored yet
		}
	}
	for i, key := range keys {
		switch plan[i].what {
		case toolhost.Kill:
			plan[i].call.stop(errCancelled)
		case toolhost.Bury:
			s.buried[key] = true
		}
	}
	return plan, nil
}

// bury stores a tombstone. When that fails it holds in this process at least.
func (s *Server) bury(key string) error {
	if err := s.ledger.write(key, toolhost.Cancelled, nil); err != nil {
		s.log.Error("a tombstone could not be stored", "error", err)
		return unavailable("the ledger cannot be written; the calls are cancelled only until this host ends", err)
	}
	s.mu.Lock()
	delete(s.buried, key)
	s.mu.Unlock()
	return nil
}
