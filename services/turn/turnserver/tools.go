package turnserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// hostPause is the wait before a tool host that cannot be reached is asked again.
const hostPause = 250 * time.Millisecond

// runTools runs the calls that have no end yet: a group's beside each other,
// the groups in order. Each end is recorded when it comes.
func (t *working) runTools(ctx, keep context.Context) error {
	for _, group := range t.p.Unfinished() {
		if len(group) == 1 {
			if err := t.runTool(ctx, keep, group[0]); err != nil {
				return err
			}
			continue
		}
		if err := t.runBeside(ctx, keep, group); err != nil {
			return err
		}
	}
	return nil
}

// maxParallel bounds the calls of one response that run beside each other.
const maxParallel = 16

type finished struct {
	call     turn.Call
	response *harnessv1.ExecuteToolResponse
	err      error
}

// runBeside runs the calls of a group beside each other. Their ends are
// recorded by this goroutine alone, in the order in which they come.
func (t *working) runBeside(ctx, keep context.Context, group []turn.Call) error {
	ends := make(chan finished)
	slots := make(chan struct{}, maxParallel)
	var running sync.WaitGroup
	for _, c := range group {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r, err := t.send(ctx, c)
			ends <- finished{c, r, err}
		})
	}
	var first error
	for range group {
		end := <-ends
		if end.err == nil {
			end.err = t.finish(keep, end.call, end.response)
		}
		if first == nil {
			first = end.err
		}
	}
	running.Wait()
	return first
}

func (t *working) runTool(ctx, keep context.Context, c turn.Call) error {
	r, err := t.send(ctx, c)
	if err != nil {
		return err
	}
	return t.finish(keep, c, r)
}

func (t *working) finish(ctx context.Context, c turn.Call, r *harnessv1.ExecuteToolResponse) error {
	failpoint.Hit(turn.Name, "tool_answered")
	entry, appended, events := turn.Finish(t.s, t.p, c, r)
	if err := t.note(ctx, entry, appended, events); err != nil {
		return err
	}
	failpoint.Hit(turn.Name, "tool_finished")
	return nil
}

// send runs one call on the tool host. The host keeps a ledger by call id, so
// sending again joins the call or returns its result; a host that cannot be
// reached is asked again until ctx ends.
func (t *working) send(ctx context.Context, c turn.Call) (*harnessv1.ExecuteToolResponse, error) {
	arguments, err := t.w.text(ctx, t.run, c.Arguments)
	if err != nil {
		return nil, err
	}
	request := &harnessv1.ExecuteToolRequest{
		Namespace:     t.run.Namespace,
		RunId:         t.run.ID,
		CallId:        c.ID,
		Tool:          c.Tool,
		Arguments:     arguments.GetInline(),
		Workspace:     t.s.GetWorkspace(),
		Timeout:       t.s.GetConfig().GetTools().GetTimeout(),
		LedgerId:      t.p.LedgerID,
		FirstSequence: t.s.GetFirstSequence(),
	}
	sent := t.takeover // an earlier worker may have sent it
	var away time.Time // since when the host does not answer
	for {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause // nothing starts behind an interrupt
		}
		r, err := t.w.cfg.ToolHost.ExecuteTool(ctx, request)
		switch {
		case context.Cause(ctx) != nil:
			return nil, context.Cause(ctx)
		case err == nil && r.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN && !sent:
			// Never sent before, so it cannot have started: the ledger is a new
			// one since this worker asked for its id.
			h, herr := t.w.toolHost(ctx, true)
			if herr != nil || h.ledgerID == request.GetLedgerId() {
				return r, nil
			}
			request.LedgerId, sent = h.ledgerID, true
			continue
		case err == nil:
			return r, nil
		case !refusedAsRequest(err):
			// Nobody knows whether it began: by its id it is joined, or its
			// result is returned.
			sent = true
			t.w.cfg.Logger.Warn("tool host", "run", t.run.ID, "call", c.ID, "error", err)
			if away.IsZero() {
				away = t.w.cfg.Now()
			}
			if t.w.cfg.Now().Sub(away) > t.w.cfg.HostPatience && t.w.otherHost(ctx, request.GetLedgerId()) {
				return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}, nil
			}
		default:
			return &harnessv1.ExecuteToolResponse{
				Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, IsError: true,
				Result: fmt.Sprintf("The tool host refused the call: %s", status.Convert(err).Message()),
			}, nil
		}
		timer := time.NewTimer(hostPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// refusedAsRequest says that a tool host did not take a call at all, so that it
// never ran.
func refusedAsRequest(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated:
		return true
	}
	return false
}

// kill ends the calls that run and records those that had ended before. It
// returns when all of it is dead.
func (t *working) kill(ctx context.Context) error {
	var ids []string
	calls := map[string]turn.Call{}
	for _, group := range t.p.Unfinished() {
		for _, c := range group {
			if t.p.Started[c.ID] {
				ids = append(ids, c.ID)
				calls[c.ID] = c
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	r, err := t.cancelCalls(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		end := &harnessv1.ExecuteToolResponse{
			Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED,
			Result:  "The run was interrupted and this call was killed. What it had done until then stays.",
		}
		switch {
		case slices.Contains(r.GetUnknown(), id):
			end = &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
		case slices.Contains(r.GetFinished(), id):
			if end, err = t.send(ctx, calls[id]); err != nil {
				return executor.Retry("result of a finished call", err)
			}
		}
		if err := t.finish(ctx, calls[id], end); err != nil {
			return err
		}
	}
	return nil
}

// cancelCalls has the tool host kill calls. A host that is away is asked again,
// for HostPatience; when another one answers then, it is given up for lost and
// its calls are unknown.
func (t *working) cancelCalls(ctx context.Context, ids []string) (*harnessv1.CancelToolsResponse, error) {
	bounded, cancel := context.WithTimeout(ctx, t.w.cfg.HostPatience)
	defer cancel()
	for {
		r, err := t.w.cfg.ToolHost.CancelTools(bounded, &harnessv1.CancelToolsRequest{
			Namespace: t.run.Namespace, RunId: t.run.ID, CallIds: ids, FirstSequence: t.s.GetFirstSequence(), LedgerId: t.p.LedgerID,
		})
		if err == nil {
			return r, nil
		}
		t.w.cfg.Logger.Warn("tool host", "run", t.run.ID, "cancel", len(ids), "error", err)
		timer := time.NewTimer(hostPause)
		select {
		case <-timer.C:
			continue
		case <-bounded.Done():
			timer.Stop()
		}
		if t.w.otherHost(ctx, t.p.LedgerID) {
			return &harnessv1.CancelToolsResponse{Unknown: ids}, nil
		}
		return nil, executor.Retry(fmt.Sprintf("kill %d call(s)", len(ids)), err)
	}
}

// otherHost says that a tool host answers, and that it has another ledger.
func (w *Server) otherHost(ctx context.Context, ledgerID string) bool {
	h, err := w.toolHost(ctx, true)
	return err == nil && h.ledgerID != ledgerID
}
