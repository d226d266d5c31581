package harnesstest

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

const Colours = `{"question":"Which colour?","options":["red","dark blue"]}`

func ToolAnswer(call, text string) *harnessv1.ToolAnswer {
	return &harnessv1.ToolAnswer{CallId: call, Result: content.Inline(text)}
}

// Six days and a half: the test may be slow.
func Soon() *timestamppb.Timestamp {
	return timestamppb.New(time.Now().Add(6*24*time.Hour + 12*time.Hour))
}

func AnApproval(id string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{
		CallId: id, Tool: "run_command", Arguments: content.Inline(`{"command":"make ` + id + `"}`), Kind: "approval",
		Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Why: "It runs a command.",
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
	}
}

func AQuestion(id, arguments string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{
		CallId: id, Tool: "ask_user", Arguments: content.Inline(arguments), Kind: "question",
		Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Why: "Which colour?", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
	}
}

func AClientCall(id string) *harnessv1.PendingCall {
	return &harnessv1.PendingCall{
		CallId: id, Tool: "lookup_order", Arguments: content.Inline(`{"id":12}`), Kind: "client_tool",
		Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT,
	}
}

// AddWideRuns adds runs whose lines are wider than a terminal.
func AddWideRuns(f *Gateway) {
	for id, ago := range map[string]time.Duration{"r-aaaa2345": 20 * time.Second, "r-bbbb2345": 5*time.Minute + time.Second, "r-cccc2345": 26*time.Hour + time.Minute} {
		spec := ASpec()
		spec.Agent.Model, spec.Goal = "anthropic:claude-sonnet-5-5", content.Inline("Find out why the nightly build fails on arm64 and fix it, with a test.")
		r := f.Add(id, "default", spec)
		r.Rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "provider_unavailable"}})
		r.Run.UpdateTime = timestamppb.New(time.Now().Add(-ago))
	}
}

func AReview(id string) *harnessv1.PendingCall {
	call := AnApproval(id)
	call.Kind, call.Why = runstate.KindReview, "It deploys."
	return call
}

func ASpec() *harnessv1.RunSpec {
	return &harnessv1.RunSpec{Goal: content.Inline("Mend it."), Workspace: "/w", Agent: &harnessv1.AgentSpec{Name: "coder", Model: "openai:m"}}
}
