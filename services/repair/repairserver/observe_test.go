package repairserver_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/repair"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
)

// worker is a run log with a repair worker and a tool host.
type worker struct {
	*steptest.Bed
	server *repairserver.Server
}

func newWorker(t *testing.T, scope *repairserver.Scope) *worker {
	t.Helper()
	w := &worker{Bed: steptest.New(t)}
	host, pool := steptest.ToolHost(t, nil), &remote.Pool{}
	t.Cleanup(pool.Close)
	w.server = repairserver.New(repairserver.Config{
		Log: w.Log, ToolHost: host, Remote: pool, Logger: w.Logger(), Scope: scope,
		Hooks: hookcaller.New(hookcaller.Config{ToolHost: host, Log: w.Log, Remote: pool}),
	})
	w.Start(w.server.Run)
	return w
}

// start is the first step of a run.
func start(spec *harnessv1.RunSpec) *harnessv1.Step {
	return &harnessv1.Step{
		From: workflow.Gateway, To: workflow.Repair,
		Snapshot: &harnessv1.Snapshot{Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_IDLE, MaxTurns: 9},
		Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_START, Spec: spec,
		}},
	}
}

// services are a context provider and a hook that answer over gRPC.
type services struct {
	harnessv1.UnimplementedContextServiceServer
	harnessv1.UnimplementedHookServiceServer
}

func (services) ProvideContext(_ context.Context, r *harnessv1.ProvideContextRequest) (*harnessv1.ProvideContextResponse, error) {
	if r.GetProvider() == "broken" {
		return nil, status.Error(codes.Internal, "no context today")
	}
	return &harnessv1.ProvideContextResponse{Text: "context for " + r.GetGoal()}, nil
}

func (services) HandleHook(_ context.Context, r *harnessv1.HandleHookRequest) (*harnessv1.HandleHookResponse, error) {
	return &harnessv1.HandleHookResponse{Verdict: &harnessv1.HookVerdict{
		Action: harnessv1.HookAction_HOOK_ACTION_REPLACE, Payload: `{"plan":"a better plan"}`,
	}}, nil
}

// TestStartObservesItsSurroundings: the workspace, context providers and hooks.
func TestStartObservesItsSurroundings(t *testing.T) {
	w := newWorker(t, nil)
	address := steptest.Serve(t, func(r grpc.ServiceRegistrar) {
		harnessv1.RegisterContextServiceServer(r, services{})
		harnessv1.RegisterHookServiceServer(r, services{})
	})
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "AGENTS.md"), []byte("use tabs"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Put(start(&harnessv1.RunSpec{
		Goal: content.Inline("the goal"), Workspace: workspace,
		Agent: &harnessv1.AgentSpec{
			Model:            "script:x",
			ContextProviders: []*harnessv1.ContextProvider{{Name: "notes", Grpc: address}, {Name: "broken", Grpc: address}, {Name: "fixed", Text: "always"}},
			Hooks:            []*harnessv1.Hook{{Id: "planner", Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_PLAN, Grpc: address}},
		},
	}))
	rec := w.Next()
	if rec.GetStep().GetTo() != workflow.Compaction {
		t.Fatalf("repair hands the run to %q", rec.GetStep().GetTo())
	}
	system := content.Text(rec.GetAppended()[0].GetContent())
	if c := rec.GetAppended()[0].GetContent().GetBlob(); c != nil {
		data, err := w.Log.Blob(w.Context(), w.Run, c.GetDigest())
		if err != nil {
			t.Fatal(err)
		}
		system = string(data)
	}
	for _, want := range []string{workspace, "use tabs", "context for the goal", "always"} {
		if !strings.Contains(system, want) {
			t.Errorf("the system prompt lacks %q", want)
		}
	}
	var failed, plan string
	for _, e := range rec.GetEvents() {
		if h := e.GetHookError(); h != nil {
			failed += h.GetHookId() + ": " + h.GetError()
		}
		plan += e.GetPlanCommit().GetPlan()
	}
	if !strings.Contains(failed, "broken: ") || !strings.Contains(failed, "no context today") || plan != "a better plan" {
		t.Errorf("the plan is %q, and failures are %q", plan, failed)
	}
}

// TestStartInAMissingWorkspaceFails as an error of the executor.
func TestStartInAMissingWorkspaceFails(t *testing.T) {
	w := newWorker(t, nil)
	w.Put(start(&harnessv1.RunSpec{Goal: content.Inline("the goal"), Workspace: filepath.Join(t.TempDir(), "missing"), Agent: &harnessv1.AgentSpec{Model: "script:x"}}))
	if failed := w.Next().GetJournal().GetExecutorFailed(); failed.GetExecutor() != workflow.Repair || !strings.Contains(failed.GetError(), "environment") {
		t.Errorf("it fails with %v", failed)
	}
}

// parkedFor is a run that waits for a call of a client's tool.
func parkedFor(call string, created time.Time, hooks ...*harnessv1.Hook) *harnessv1.Step {
	s := state()
	s.Status, s.Phase, s.ParkVersion = harnessv1.RunStatus_RUN_STATUS_PARKED, harnessv1.Phase_PHASE_AWAITING_TOOL, 1
	s.Turn, s.StopReason, s.CreateTime = &harnessv1.TurnState{Number: 3, Open: true}, &harnessv1.StopReason{Kind: "client_tool"}, timestamppb.New(created)
	s.Definition = &harnessv1.Definition{Hooks: hooks}
	s.PendingToolCalls = []*harnessv1.PendingCall{{
		CallId: call, Tool: "upload", Kind: "client_tool", TurnNumber: 3, Arguments: content.Inline("{}"),
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
	}}
	return &harnessv1.Step{From: workflow.StopDecision, To: runlog.Park, Snapshot: s, Message: &harnessv1.Step_Parked{
		Parked: &harnessv1.Parked{Reason: s.GetStopReason(), Pending: s.GetPendingToolCalls()},
	}}
}

// TestHooksReadAnswersThatAreBlobs: the text of a stored answer is an observation.
func TestHooksReadAnswersThatAreBlobs(t *testing.T) {
	w := newWorker(t, nil)
	w.Put(parkedFor("c", time.Now(), &harnessv1.Hook{
		Id: "long", Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Cel: `result.endsWith("the end")`,
		Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: "It ended.",
	}))
	w.Send(&harnessv1.InboxItem{Id: "a", Time: timestamppb.Now(), Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{
		CallId: "c", Result: w.Blob(strings.Repeat("long ", 4000) + "the end"),
	}}})
	if cause := w.NextStep().GetRepairTrigger().GetCause(); cause != harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE {
		t.Fatalf("the run continues with %v", cause)
	}
	rec := w.Next()
	guided := slices.ContainsFunc(rec.GetAppended(), func(m *harnessv1.Message) bool { return strings.Contains(content.Text(m.GetContent()), "It ended.") })
	if !guided || rec.GetStep().GetTo() != workflow.StopDecision {
		t.Errorf("repair commits %v", rec)
	}
}

// TestScopeLimitsTheRunsThatAreWoken to those of the process and those that get an
// input while it runs.
func TestScopeLimitsTheRunsThatAreWoken(t *testing.T) {
	since := time.Now()
	before := since.Add(-time.Hour)
	answer := func(id string, at time.Time) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Id: id, Time: timestamppb.New(at), Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{}}}
	}
	own := runlog.Run{Namespace: "test", ID: "own"}
	w := newWorker(t, &repairserver.Scope{Since: since, Runs: []runlog.Run{own}})
	w.Put(parkedFor("c", before))
	w.Send(answer("old", before)) // and nothing happens
	w.Send(&harnessv1.InboxItem{Id: "timer 1", Time: timestamppb.New(since.Add(time.Minute)), Input: &harnessv1.InboxItem_TimerFired{
		TimerFired: &harnessv1.TimerFired{ParkVersion: 1},
	}}) // nor for a timer

	b := &bed{T: t, ctx: w.Context(), log: w.Log}
	for run, created := range map[runlog.Run]time.Time{own: before, {Namespace: "test", ID: "new"}: since.Add(time.Minute)} {
		b.append(run, parkedFor("c", created))
		if _, _, err := w.Log.AppendInbox(w.Context(), run, answer("old", before), 0); err != nil {
			t.Fatal(err)
		}
		b.eventually(run.ID+" is woken", func() bool { return b.newest(run).Header.Version > 2 })
	}
	if v := b.newest(w.Run).Header.Version; v != 1 {
		t.Errorf("a run out of scope is at version %d", v)
	}
	w.Send(answer("fresh", since.Add(time.Minute)))
	if cause := w.NextStep().GetRepairTrigger().GetCause(); cause != harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE {
		t.Errorf("the run continues with %v", cause)
	}
}

// TestRepairServiceDecidesWithoutCommitting over gRPC.
func TestRepairServiceDecidesWithoutCommitting(t *testing.T) {
	w := newWorker(t, nil)
	client := harnessv1.NewRepairServiceClient(steptest.Dial(t, steptest.Serve(t, w.server.Register)))
	r, err := client.Repair(w.Context(), &harnessv1.RepairRequest{Input: &harnessv1.StepInput{
		Namespace: "test", RunId: "r", Step: start(&harnessv1.RunSpec{Agent: &harnessv1.AgentSpec{}}),
	}})
	if err != nil || !slices.Equal(r.GetOutput().GetNeeds().GetKeys(), []string{"inbox", "environment"}) {
		t.Errorf("it needs %v, %v", r.GetOutput(), err)
	}
	if _, err := client.Repair(w.Context(), &harnessv1.RepairRequest{Input: &harnessv1.StepInput{Step: to(runlog.End)}}); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(status.Convert(err).Message(), "repair_trigger is missing") {
		t.Errorf("a step of another kind is refused with %v", err)
	}
}

// TestAnswersAfterACompactionAreJudged: the conversation is read for an answer that may
// repeat what compaction has taken away.
func TestAnswersAfterACompactionAreJudged(t *testing.T) {
	w := newWorker(t, nil)
	call := &harnessv1.ToolCall{Id: "before", Name: "upload", Arguments: content.Inline("{}")}
	step := parkedFor("c", time.Now())
	s := step.GetSnapshot()
	s.MessageCount, s.Config = 2, runstate.Resolve(nil, 0)
	s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: 1, Watermarks: []*harnessv1.Watermark{{
		Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: 2,
	}}}
	w.Put(step, &harnessv1.Message{Id: 1, TurnNumber: 1, Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{call}},
		&harnessv1.Message{Id: 2, TurnNumber: 1, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "before", ToolName: "upload", Content: content.Inline("done")})
	w.Send(&harnessv1.InboxItem{Id: "a", Time: timestamppb.Now(), Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{
		CallId: "c", Result: content.Inline("done"),
	}}})
	w.NextStep() // it is woken
	next := w.NextStep()
	if got := next.GetSnapshot().GetProgressTracker(); got.GetRepeatedOutcomes() != 1 || got.GetFreshOutcomes() != 0 {
		t.Errorf("the answer counts as %v", got)
	}
	if n := agent.Observation(&harnessv1.StepInput{Observed: next.GetObserved()}, repair.NeedConversation).GetConversation().GetMessages(); n != 2 {
		t.Errorf("observed a conversation of %d messages", n)
	}
}
