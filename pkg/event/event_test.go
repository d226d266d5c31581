package event_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// all calls every constructor once, each argument with a value that is not zero.
func all() []*harnessv1.Event {
	took := durationpb.New(1)
	reason := &harnessv1.StopReason{Kind: "kind"}
	return []*harnessv1.Event{
		event.SessionStart("goal", "model", []string{"turn"}, 1, "nina"),
		event.SessionPause(reason),
		event.SessionResume("resume"),
		event.SessionComplete(harnessv1.RunStatus_RUN_STATUS_DONE, true, reason),
		event.RunInterrupted("reason", "nina"),
		event.RunCancelled("reason", "nina"),
		event.BudgetWarn(&harnessv1.BudgetWarn{Budget: "turns", Limit: 1, Used: 1}),
		event.PlanDraft("plan"),
		event.PlanCommit("plan"),
		event.ModeChanged("plan", "execute"),
		event.ModelChanged("a:b", "c:d"),
		event.ContextUsage(&harnessv1.ContextUsage{UsedTokens: 1, MaxInputTokens: 2, Cleared: 3, Externalized: 4, Summarized: 5, Dropped: 6}),
		event.ContextPressure("soft", 1, 2),
		event.CompactionStarted(&harnessv1.CompactionStarted{Level: "soft", TokensBefore: 3, TokensToFree: 2, Background: true, Job: "a"}),
		event.CompactionCompleted(&harnessv1.CompactionCompleted{
			TokensBefore: 3, TokensAfter: 2, FreedTokens: 1, Duration: took, Strategies: []string{"clear"},
			Changes: []*harnessv1.CompactionChange{{}}, Error: "error", Pass: 1,
		}),
		event.InputAccepted("item", "resume", "nina"),
		event.InputRejected("item", "resume", "reason", "nina"),
		event.ExecutorMissing("turn"),
		event.ExecutorError("turn", "error", 1),
		event.StepStart(1, true),
		event.StepEnd("error", "message"),
		event.WorkerTakeover(2, "worker"),
		event.ModelResponse("model", &harnessv1.Usage{InputTokens: 1}, "stop", 1, took),
		event.ModelRetry(&harnessv1.ModelRetried{
			Last: true,
			Try:  1, Model: "model", Error: "error", Wait: took,
			Adjustment: &harnessv1.ModelAdjustment{Adjustment: harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT},
		}),
		event.ContinuationPrompt(1, 2),
		event.StopRejected("kind", "message", 1, &harnessv1.GapReport{}),
		event.ContractEvaluated(true, &harnessv1.Coverage{}, []*harnessv1.RequirementCoverage{{}}),
		event.StallDetected(3),
		event.DoomLoopDetected(&harnessv1.DoomLoopDetected{Kind: "strict", Length: 1, Repeats: 3, Tools: []string{"read"}, Correction: 1}),
		event.ToolCalled("call", "read", content.Inline("{}"), "approval", harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL),
		event.ToolResult("call", "read", took),
		event.ToolError("call", "read", took),
		event.ToolDenied("call", "read", "reason"),
		event.ApprovalRequested(&harnessv1.PendingCall{
			CallId: "call", Tool: "read", Arguments: content.Inline("{}"), Why: "why", Deadline: &timestamppb.Timestamp{Seconds: 1}, Preview: &harnessv1.CallPreview{Digest: "d"},
		}),
		event.ApprovalAnswered(&harnessv1.PendingCall{CallId: "call", Tool: "read"}, &harnessv1.Approval{
			CallId: "call", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, Digest: "d",
			Rules: []*harnessv1.ToolRule{{Name: "read"}}, Arguments: content.Inline("{}"),
		}, "reason", "nina"),
		event.Repaired("call", "read", 1, "reason"),
		event.AgentStarted(&harnessv1.Child{RunId: "a-1", CallId: "call", Agent: "explore", Background: true, ContinuedBy: "later", Report: &harnessv1.ChildReport{Version: 3}}),
		event.AgentWaiting(&harnessv1.Child{RunId: "a-1", CallId: "call", Agent: "explore", Report: &harnessv1.ChildReport{Reason: &harnessv1.StopReason{Kind: "approval"}, Version: 5}}),
		event.AgentEnded(&harnessv1.Child{RunId: "a-1", CallId: "call", Agent: "explore", Report: &harnessv1.ChildReport{
			Status: harnessv1.RunStatus_RUN_STATUS_DONE, Reason: &harnessv1.StopReason{Kind: "agent_done"}, Accepted: true, Turns: 2, Usage: &harnessv1.Usage{InputTokens: 1}, Version: 7,
		}}),
		event.SubtaskStarted(&harnessv1.SubtaskStarted{SubtaskIndex: 1, TotalSubtasks: 2, Title: "Look", WorkflowType: "graph", Parallel: true}),
		event.SubtaskCompleted(&harnessv1.SubtaskCompleted{SubtaskIndex: 1, TotalSubtasks: 2, Title: "Look", ArtifactsCreated: 1, IsLast: true}),
		event.SwarmActivated(&harnessv1.SwarmActivated{SourceCount: 5, SpecialistCount: 2, Specialists: []string{"east", "west"}}),
		event.SwarmCompleted(&harnessv1.SwarmCompleted{SpecialistsSucceeded: 2, AggregatorSucceeded: true, TotalDurationMs: 1, EstimatedCostUsd: 0.1}),
		event.GuidanceInjected("jit", "rule", "text"),
		event.HookResult("hook", "before_step", "skip", "reason"),
		event.HookError("hook", "before_step", "error", true),
		event.WorkItemChanged("added", &harnessv1.WorkItem{Id: "a"}, 1, 2),
		event.DeliverablesUpdated("a", "title", harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE),
		event.QualityComplexity(&harnessv1.QualityComplexity{Level: "MEDIUM", Reason: "why", SubtaskCount: 1, WorkflowType: "chat", Confidence: 1, Expected: &harnessv1.Expected{}, KindReason: "why"}),
		event.QualityPlanSelected(&harnessv1.QualityPlanSelected{Plan: "plan", Score: 1, CandidatesCount: 2, Subtasks: []string{"look"}, Breakdown: &structpb.Struct{}, Reason: "why"}),
		event.QualityAlert(&harnessv1.QualityAlert{Severity: "warning", Checkpoint: 500, Issue: "issue", Suggestion: "suggestion"}),
		event.QualityContract(&harnessv1.QualityContract{
			Passed: true, Score: 1, Issues: []string{"issue"}, ArtifactCounts: map[string]uint32{"insight": 1}, Reasoning: "why", Attempt: 1,
		}),
		event.QualityVerified(&harnessv1.QualityVerified{Passed: true, Score: 1, Issues: []string{"issue"}, Feedback: "good", Reasoning: "why", Contrastive: true, Attempt: 1}),
		event.QualityScored(&harnessv1.QualityScored{Type: "rqs", Score: 90, Grade: "A", Label: "excellent", Breakdown: &structpb.Struct{}, Attempt: 1}),
		event.QualityRetry(2, "reason", 0.5),
		event.QualityDegraded(&harnessv1.QualityDegraded{AttemptsMade: 3, BestScore: 0.5, WorkflowType: "chat", Issues: []string{"issue"}}),
		event.QualityIterated(&harnessv1.QualityIterated{Iterations: 2, BestScore: 0.5, AcceptedCount: 1, TotalDurationMs: 1, EstimatedCostUsd: 0.1}),
		event.QualityProfile(&harnessv1.QualityProfile{
			Maturity: "new", TotalRuns: 1, AvgQuality: 0.5, FeedbackRate: 0.5, CommonIssues: []string{"other"}, QualityMultiplier: 0.85, Problem: "problem",
		}),
		event.FeedbackGiven(&harnessv1.FeedbackGiven{Thumb: "down", Segment: 1, Caller: "local"}),
		event.QualityMilestone(&harnessv1.QualityMilestone{Level: "developing", Threshold: 10, TotalRuns: 10, Description: "description", QualityMultiplier: 1}),
		event.ServerState(&harnessv1.ServerState{
			Server: "s", State: "failed", Message: "why", Tools: 1, LeftOut: []*harnessv1.McpLeftOut{{Tool: "t", Reason: "why"}},
		}),
		event.ToolsChanged(&harnessv1.ToolsChanged{Server: "s", Added: []string{"a"}, Changed: []string{"b"}, Removed: []string{"c"}}),
		event.ToolQuestion(&harnessv1.PendingCall{
			CallId: "call", Tool: "read", Deadline: &timestamppb.Timestamp{Seconds: 1}, Question: &harnessv1.ServerQuestion{Server: "s", Round: 1},
		}),
		event.ToolAnswered(&harnessv1.PendingCall{CallId: "call", Tool: "read", Question: &harnessv1.ServerQuestion{Round: 1}}, harnessv1.AnswerAction_ANSWER_ACTION_DECLINE, "local"),
		event.ContextMetrics(&harnessv1.ContextMetrics{
			TotalToolCalls: 1, CumulativeResultChars: 4, EstimatedToolResultTokens: 1, LargestResult: &harnessv1.LargestResult{Tool: "read", Chars: 4}, CallsPerTool: map[string]uint32{"read": 1},
		}),
	}
}

// onDelivery are the fields that the gateway fills from the record's messages.
var onDelivery = map[protoreflect.FullName]bool{
	"harness.v1.ModelResponse.text": true, "harness.v1.ModelResponse.reasoning": true, "harness.v1.ToolResult.result": true, "harness.v1.ToolError.error": true,
}

func TestEachEventHasOneConstructor(t *testing.T) {
	built := map[protoreflect.Name]int{}
	oneof := (&harnessv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("event")
	for _, e := range all() {
		f := e.ProtoReflect().WhichOneof(oneof)
		built[f.Name()]++
		inner := e.ProtoReflect().Get(f).Message()
		fields := inner.Descriptor().Fields()
		for i := range fields.Len() {
			if field := fields.Get(i); !inner.Has(field) && !onDelivery[field.FullName()] {
				t.Errorf("the constructor of %s leaves %s unset", f.Name(), field.Name())
			}
		}
	}
	for i := range oneof.Fields().Len() {
		if name := oneof.Fields().Get(i).Name(); built[name] != 1 {
			t.Errorf("%s has %d constructors, want 1", name, built[name])
		}
	}
}

func TestToolEndedReportsFailure(t *testing.T) {
	if e := event.ToolEnded("call", "read", true, nil); e.GetToolError().GetCallId() != "call" {
		t.Errorf("a failed call is reported as %v", e)
	}
	if e := event.ToolEnded("call", "read", false, nil); e.GetToolResult().GetCallId() != "call" {
		t.Errorf("a successful call is reported as %v", e)
	}
}

func TestConstructorsCopyArguments(t *testing.T) {
	arguments := content.Inline("{}")
	called := event.ToolCalled("call", "read", arguments, "", 0)
	asked := event.ApprovalRequested(&harnessv1.PendingCall{Arguments: arguments})
	if called.GetToolCall().GetArguments() == arguments || asked.GetApprovalRequested().GetArguments() == arguments {
		t.Error("an event shares its arguments with the caller")
	}
}

func TestGuidanceInjectedCutsLongText(t *testing.T) {
	e := event.GuidanceInjected("hook", "h", strings.Repeat("a", content.MaxPreview+1))
	if n := len(e.GetGuidanceInjected().GetText()); n != content.MaxPreview {
		t.Errorf("the text has %d bytes, want %d", n, content.MaxPreview)
	}
}
