package calls

import (
	"math"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// comparison has the entries of a run that its log may not know.
type comparison struct {
	// calls are the entries, with their ends.
	calls []*harnessv1.LedgerCall
	// running is one that has not ended; nil if all have.
	running *call
	// other is true if the entry of the job's call is that of another one.
	other bool
	// sequence is the number of the entry of the job's call; 0 if it has none.
	sequence uint64
}

// compare compares the entries of a job's run with those that its request knows. The error is
// UNAVAILABLE.
func (s *Calls) compare(j *Job) (u comparison, err error) {
	if j.Call == nil {
		return comparison{}, nil
	}
	known := j.Known
	if !j.Numbered {
		known = math.MaxUint64
	}
	own, later, err := s.entries.Numbered(j.Run, j.ID, known)
	if err != nil {
		return comparison{}, ledger.Unreadable(err)
	}
	u.other, u.sequence = toolhost.IsOther(own, j.Call), own.GetSequence()
	all := toolhost.Unrecorded(later, j.KnownCalls, j.Call)
	for _, c := range all {
		s.mu.Lock()
		status, err := s.status(ledger.CallKey(j.Run, c.GetCallId()))
		s.mu.Unlock()
		switch {
		case err != nil:
			return comparison{}, err
		case status.call != nil:
			u.running = status.call
			u.calls = append(u.calls, c)
		default:
			u.calls = append(u.calls, ended(c, status.Entry, toolhost.UnrecordedBytes/len(all)))
		}
	}
	return u, nil
}

// ended returns the description of a call with how it ended, and up to limit bytes of its result.
func ended(c *harnessv1.LedgerCall, e ledger.Entry, limit int) *harnessv1.LedgerCall {
	resp, _ := e.Response.(*harnessv1.ExecuteToolResponse)
	switch {
	case e.State == toolhost.Done && resp != nil:
		c.Outcome, c.IsError = resp.GetOutcome(), resp.GetIsError()
		c.Result = toolhost.Cut(resp.GetResult(), limit, "The rest is not kept.")
	case e.State == toolhost.Forgotten:
		c.Outcome = harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
	case e.State == toolhost.Cancelled && e.Fate == toolhost.Killed:
		c.Outcome = harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
	default:
		c.Outcome = harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
	}
	return c
}

// add returns a response with the entries that the log does not know. All requests for a call
// share its response, so it is copied.
func (u comparison) add(r ledger.Response) ledger.Response {
	resp, ok := r.(*harnessv1.ExecuteToolResponse)
	if !ok || resp == nil || len(u.calls) == 0 {
		return r
	}
	resp = proto.CloneOf(resp)
	resp.Unrecorded = u.calls
	return resp
}

// refusal returns the response to a call that does not run because of an entry.
func (u comparison) refusal() ledger.Response {
	text := toolhost.TakenID
	if len(u.calls) > 0 {
		text = toolhost.LostCalls
	}
	return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_REFUSED, IsError: true, Result: text}
}

// numbered returns a response with the number of its call's entry.
func numbered(r ledger.Response, sequence uint64) ledger.Response {
	if resp, ok := r.(*harnessv1.ExecuteToolResponse); ok && resp != nil {
		resp.LedgerSequence = sequence
	}
	return r
}
