package turnserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// sendCall starts to deliver a call to its tool host. A panic fails the turn, as one in
// the executor's goroutine does, and not the process.
func (t *execution) sendCall(ctx context.Context, a turn.SendCall) turn.Event {
	t.calls.Go(func() {
		var end turn.Event
		defer func() {
			if r := recover(); r != nil {
				end = turn.CallBroken{ID: a.Call.ID, Err: fmt.Errorf("deliver call %s: panic: %v", a.Call.ID, r)}
			}
			t.ends <- end
		}()
		defer t.showOutput(ctx, a)()
		end = t.deliverSpan(ctx, a)
	})
	return turn.CallSent{}
}

// awaitCall waits for the end of a call. A call ends when ctx does.
func (t *execution) awaitCall(ctx context.Context) turn.Event {
	over := executor.Waits(ctx)
	event := <-t.ends
	over()
	if _, ok := event.(turn.CallEnded); ok {
		failpoint.Hit(turn.Name, "tool_answered")
	}
	return event
}

// propose asks a tool host what calls would change.
func (t *execution) propose(ctx context.Context, a turn.ProposeCalls) turn.Event {
	defer executor.Waits(ctx)()
	s := t.state.Snapshot
	request := &harnessv1.InspectWorkspaceRequest{
		Workspace: s.GetWorkspace(), Namespace: t.run.Namespace, RunId: t.run.ID, FirstSequence: s.GetFirstSequence(), InstructionsOnly: true,
	}
	for _, c := range a.Calls {
		arguments, err := t.server.text(ctx, t.run, c.Arguments)
		if err != nil {
			t.server.cfg.Logger.WarnContext(ctx, "read arguments", "run", t.run.ID, "call", c.ID, "error", err)
			return turn.Proposals{}
		}
		request.Proposed = append(request.Proposed, &harnessv1.ProposedCall{Tool: c.Tool, Arguments: arguments.GetInline()})
	}
	response, err := t.server.cfg.ToolHost.InspectWorkspace(ctx, request)
	if err != nil || len(response.GetPreviews()) != len(a.Calls) {
		t.server.cfg.Logger.WarnContext(ctx, "preview calls", "run", t.run.ID, "error", err)
		return turn.Proposals{}
	}
	return turn.Proposals{Previews: response.GetPreviews()}
}

// deliver sends a call to the tool host with the ledger until it ends, or can be
// moved to another host, or ctx ends.
func (t *execution) deliver(ctx context.Context, a turn.SendCall) turn.Event {
	broken := func(err error) turn.Event { return turn.CallBroken{ID: a.Call.ID, Err: err} }
	arguments, err := t.server.text(ctx, t.run, a.Call.Arguments)
	if err != nil {
		return broken(err)
	}
	requests := t.state.Requests()
	var question *harnessv1.ServerQuestion
	if requests.OfServer(a.Call) && a.Call.Question != nil {
		if question, err = t.server.question(ctx, t.run, a.Call.Question); err != nil {
			return broken(err)
		}
	}
	request := requests.HostRequest(a.Call, toolcall.Inline{Arguments: arguments.GetInline(), Question: question},
		a.Ledger, access.IsPerson(t.state.Snapshot.GetStartedBy()))
	if a.Known != nil {
		request.KnownSequence, request.KnownCalls, request.Compared = proto.Uint64(a.Known.Sequence), a.Known.Calls, a.Known.Compared
	}
	d := toolcall.Delivery{Fresh: a.Fresh, Idempotent: a.Call.Idempotent && !a.Call.Held(), Patience: t.server.cfg.HostPatience}
	for {
		switch d.Step {
		case toolcall.StepWait:
			sleep(ctx, toolcall.HostPause)
			fallthrough
		case toolcall.StepSend:
			if cause := context.Cause(ctx); cause != nil {
				return broken(cause)
			}
			d.Tried(t.try(ctx, request))
			if cause := context.Cause(ctx); cause != nil {
				return broken(cause)
			}
		case toolcall.StepSeek:
			d.Sought(t.server.otherLedger(ctx, a.Ledger))
		case toolcall.StepMove:
			t.server.cfg.Logger.WarnContext(ctx, "call moves to another tool host", "run", t.run.ID, "call", a.Call.ID)
			return turn.CallMoved{ID: a.Call.ID, Ledger: d.Ledger}
		case toolcall.StepEnd:
			if d.Response.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED {
				_, _ = t.server.toolHost(ctx, true) // it confines less than it said
			}
			return turn.CallEnded{ID: a.Call.ID, Response: d.Response}
		}
	}
}

// try sends a call once.
func (t *execution) try(ctx context.Context, request *harnessv1.ExecuteToolRequest) toolcall.Try {
	try := toolcall.Try{Began: t.server.cfg.Now()}
	response, err := t.server.cfg.ToolHost.ExecuteTool(ctx, request)
	try.Ended = t.server.cfg.Now()
	switch {
	case err == nil:
		try.Response = response
	case context.Cause(ctx) != nil:
	case refusedAsRequest(err):
		try.Refused = cmp.Or(content.Line(status.Convert(err).Message(), content.MaxPreview), status.Code(err).String())
	default:
		t.server.cfg.Logger.WarnContext(ctx, "send call", "run", t.run.ID, "call", request.GetCallId(), "error", err)
		try.NotStarted = fault.ReasonOf(err) == notStarted
	}
	return try
}

// notStarted is the reason of a refusal before anything of the call began.
var notStarted = fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED)

// refusedAsRequest reports whether a tool host did not accept a call at all, so
// that it never ran.
func refusedAsRequest(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated:
		return true
	}
	return false
}

// cancelCalls has the tool host kill calls. It retries until HostPatience is over.
func (t *execution) cancelCalls(ctx context.Context, a turn.CancelCalls) turn.Event {
	defer executor.Waits(ctx)()
	bounded, cancel := context.WithTimeout(ctx, t.server.cfg.HostPatience)
	defer cancel()
	for {
		r, err := t.server.cfg.ToolHost.CancelTools(bounded, &harnessv1.CancelToolsRequest{
			Namespace: t.run.Namespace, RunId: t.run.ID, CallIds: a.IDs, FirstSequence: t.state.Snapshot.GetFirstSequence(), LedgerId: a.Ledger,
		})
		if err == nil {
			return turn.CallsCancelled{Unknown: r.GetUnknown(), Finished: r.GetFinished(), Results: r.GetKilledResults()}
		}
		t.server.cfg.Logger.WarnContext(ctx, "cancel calls", "run", t.run.ID, "calls", len(a.IDs), "error", err)
		sleep(bounded, toolcall.HostPause)
		if bounded.Err() != nil {
			return turn.HostAway{Err: executor.Retry(fmt.Sprintf("kill %d call(s)", len(a.IDs)), err)}
		}
	}
}

// findHost looks for a tool host with another ledger.
func (t *execution) findHost(ctx context.Context, a turn.FindHost) turn.Event {
	return turn.HostFound{Ledger: t.server.otherLedger(ctx, a.Ledger)}
}

// errNoResult: the host has stored the end of a call and does not return it.
var errNoResult = errors.New("the tool host does not return it")

// fetchResult reads the result of a call that ended before it could be killed.
func (t *execution) fetchResult(ctx context.Context, a turn.FetchResult) turn.Event {
	defer executor.Waits(ctx)()
	bounded, cancel := context.WithTimeout(ctx, t.server.cfg.HostPatience)
	defer cancel()
	event := t.deliver(bounded, turn.SendCall{Call: a.Call, Ledger: a.Ledger, Known: a.Known})
	if broken, ok := event.(turn.CallBroken); ok {
		return turn.Failed{Err: executor.Retry("result of a finished call", errors.Join(broken.Err, errNoResult))}
	}
	if ended, ok := event.(turn.CallEnded); ok {
		return ended
	}
	return turn.Failed{Err: executor.Retry("result of a finished call", errNoResult)}
}
