package turnserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// hostPause is the wait before a tool host that cannot be reached is asked again.
const hostPause = 250 * time.Millisecond

// runTools runs the calls that have no end yet: a group's beside each other,
// the groups in order. Each end is recorded when it comes.
func (t *working) runTools(ctx, keep context.Context) error {
	for _, group := range t.p.Unfinished() {
		if t.p.Abort != "" {
			return nil // a hook has ended the turn: what is left is answered as not run
		}
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

// finished is how a call ended, or to which host it has to be moved.
type finished struct {
	call     turn.Call
	response *harnessv1.ExecuteToolResponse
	moved    *host
	err      error
}

// runBeside runs the calls of a group beside each other. Their ends are
// recorded by this goroutine alone, in the order in which they come.
func (t *working) runBeside(ctx, keep context.Context, group []turn.Call) error {
	ends := make(chan finished)
	slots := make(chan struct{}, maxParallel)
	var running sync.WaitGroup
	begin := func(c turn.Call, ledger string, fresh bool) {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ends <- t.execute(ctx, c, ledger, fresh)
		})
	}
	for _, c := range group {
		begin(c, t.p.Ledgers[c.ID], !t.takeover)
	}
	var first error
	for open := len(group); open > 0; {
		end := <-ends
		if end.moved != nil && first == nil {
			if end.err = t.move(keep, end.call, end.moved); end.err == nil {
				begin(end.call, end.moved.ledgerID, true)
				continue
			}
		}
		open--
		if end.err == nil && end.response != nil {
			end.err = t.finish(ctx, keep, end.call, end.response)
		}
		if first == nil {
			first = end.err
		}
	}
	running.Wait()
	return first
}

func (t *working) runTool(ctx, keep context.Context, c turn.Call) error {
	for fresh := !t.takeover; ; fresh = true {
		end := t.execute(ctx, c, t.p.Ledgers[c.ID], fresh)
		switch {
		case end.err != nil:
			return end.err
		case end.moved == nil:
			return t.finish(ctx, keep, c, end.response)
		}
		if err := t.move(keep, c, end.moved); err != nil {
			return err
		}
	}
}

// move records that a call is for another host from now on.
func (t *working) move(ctx context.Context, c turn.Call, to *host) error {
	t.w.cfg.Logger.WarnContext(ctx, "call is moved to another tool host", "run", t.run.ID, "call", c.ID)
	return t.note(ctx, turn.Move(c, to.ledgerID), nil, nil)
}

// finish records the end of a call. Its subscribers are asked while ctx lasts.
func (t *working) finish(ctx, keep context.Context, c turn.Call, r *harnessv1.ExecuteToolResponse) error {
	failpoint.Hit(turn.Name, "tool_answered")
	effects, err := t.heard(ctx, c, r)
	if err != nil {
		return err
	}
	entry, appended, events := turn.FinishWith(t.s, t.p, c, r, effects)
	if err := t.note(keep, entry, appended, events); err != nil {
		return err
	}
	failpoint.Hit(turn.Name, "tool_finished")
	return nil
}

// Bounds of the wait for a tool host.
const (
	// movePatience is how long one may be away before a call that has not begun
	// there is moved to another.
	movePatience = 2 * time.Second
	// joined is how long a try lasts that has reached its host.
	joined = 5 * time.Second
)

// send runs one call on the tool host that has the ledger. The host keeps its
// ledger by call id, so sending again joins the call or returns its result; a
// host that cannot be reached is asked again until ctx ends. fresh says that
// nobody has sent the call under this ledger before.
func (t *working) send(ctx context.Context, c turn.Call, ledger string, fresh bool) finished {
	arguments, err := t.w.text(ctx, t.run, c.Arguments)
	if err != nil {
		return finished{call: c, err: err}
	}
	request := &harnessv1.ExecuteToolRequest{
		Namespace:     t.run.Namespace,
		RunId:         t.run.ID,
		CallId:        c.ID,
		Tool:          c.Tool,
		Arguments:     arguments.GetInline(),
		Workspace:     t.s.GetWorkspace(),
		Timeout:       t.s.GetConfig().GetTools().GetTimeout(),
		LedgerId:      ledger,
		FirstSequence: t.s.GetFirstSequence(),
	}
	unknown := &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
	var away time.Time // since when the host does not answer
	for {
		if cause := context.Cause(ctx); cause != nil {
			return finished{call: c, err: cause} // nothing starts behind an interrupt
		}
		begun := t.w.cfg.Now()
		r, err := t.w.cfg.ToolHost.ExecuteTool(ctx, request)
		now := t.w.cfg.Now()
		switch {
		case context.Cause(ctx) != nil:
			return finished{call: c, err: context.Cause(ctx)}
		case err == nil && r.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN && fresh:
			// Never sent before, so it cannot have started: the ledger is a new
			// one since this worker asked for its id.
			if other := t.w.otherHost(ctx, ledger); other != nil {
				return finished{call: c, moved: other}
			}
			return finished{call: c, response: r}
		case err == nil:
			return finished{call: c, response: r}
		case refusedAsRequest(err):
			return finished{call: c, response: &harnessv1.ExecuteToolResponse{
				Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, IsError: true,
				Result: fmt.Sprintf("The tool host refused the call: %s", status.Convert(err).Message()),
			}}
		}
		t.w.cfg.Logger.WarnContext(ctx, "tool host", "run", t.run.ID, "call", c.ID, "error", err)
		if fault.ReasonOf(err) != notStarted {
			fresh = false // nobody knows whether it began: by its id it is joined
		}
		if away.IsZero() || now.Sub(begun) > joined {
			away = now
		}
		movable := fresh || c.Idempotent
		if gone := now.Sub(away); gone > t.w.cfg.HostPatience || movable && gone > movePatience {
			switch other := t.w.otherHost(ctx, ledger); {
			case other != nil && movable:
				return finished{call: c, moved: other}
			case other != nil:
				return finished{call: c, response: unknown}
			}
		}
		timer := time.NewTimer(hostPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return finished{call: c, err: context.Cause(ctx)}
		case <-timer.C:
		}
	}
}

// notStarted is the reason of a refusal before anything of the call began.
var notStarted = fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED)

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
	byLedger := map[string][]string{}
	for _, id := range ids {
		byLedger[t.p.Ledgers[id]] = append(byLedger[t.p.Ledgers[id]], id)
	}
	for ledger, ids := range byLedger {
		if err := t.killUnder(ctx, ledger, ids, calls); err != nil {
			return err
		}
	}
	return nil
}

// killUnder ends calls that were started under one ledger.
func (t *working) killUnder(ctx context.Context, ledger string, ids []string, calls map[string]turn.Call) error {
	r, err := t.cancelCalls(ctx, ledger, ids)
	if err != nil {
		return err
	}
	stopped, end := context.WithCancel(ctx) // nobody is asked about what is dead
	end()
	for _, id := range ids {
		ended := &harnessv1.ExecuteToolResponse{
			Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED,
			Result:  "The run was interrupted and this call was killed. What it had done until then stays.",
		}
		switch {
		case slices.Contains(r.GetUnknown(), id):
			ended = &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
		case slices.Contains(r.GetFinished(), id):
			bounded, cancel := context.WithTimeout(ctx, t.w.cfg.HostPatience)
			done := t.send(bounded, calls[id], ledger, false)
			cancel()
			if done.err != nil || done.response == nil {
				return executor.Retry("result of a finished call", errors.Join(done.err, errNoResult))
			}
			ended = done.response
		}
		if err := t.finish(stopped, ctx, calls[id], ended); err != nil {
			return err
		}
	}
	return nil
}

var errNoResult = errors.New("its tool host does not give it")

// cancelCalls has the tool host kill calls. A host that is away is asked again,
// for HostPatience; when another one answers then, it is given up for lost and
// its calls are unknown.
func (t *working) cancelCalls(ctx context.Context, ledger string, ids []string) (*harnessv1.CancelToolsResponse, error) {
	bounded, cancel := context.WithTimeout(ctx, t.w.cfg.HostPatience)
	defer cancel()
	for {
		r, err := t.w.cfg.ToolHost.CancelTools(bounded, &harnessv1.CancelToolsRequest{
			Namespace: t.run.Namespace, RunId: t.run.ID, CallIds: ids, FirstSequence: t.s.GetFirstSequence(), LedgerId: ledger,
		})
		if err == nil {
			return r, nil
		}
		t.w.cfg.Logger.WarnContext(ctx, "tool host", "run", t.run.ID, "cancel", len(ids), "error", err)
		timer := time.NewTimer(hostPause)
		select {
		case <-timer.C:
			continue
		case <-bounded.Done():
			timer.Stop()
		}
		if ctx.Err() == nil && t.w.otherHost(ctx, ledger) != nil {
			return &harnessv1.CancelToolsResponse{Unknown: ids}, nil
		}
		return nil, executor.Retry(fmt.Sprintf("kill %d call(s)", len(ids)), err)
	}
}

// otherHost is a tool host that answers and has another ledger; nil when there
// is none.
func (w *Server) otherHost(ctx context.Context, ledgerID string) *host {
	if h, err := w.toolHost(ctx, true); err == nil && h.ledgerID != ledgerID {
		return h
	}
	return nil
}
