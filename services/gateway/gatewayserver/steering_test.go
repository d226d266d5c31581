package gatewayserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

func (b *bed) mode(run, id, name string) error {
	_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: name}}})
	return err
}

func (b *bed) replan(run, id, why string) error {
	_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_Replan{Replan: &harnessv1.ReplanRequest{Reason: why}}})
	return err
}

// pack stores the large parts of a state as executors do.
func (h *hand) pack(s *harnessv1.Snapshot) {
	h.b.t.Helper()
	h.b.must(runstate.Pack(s, func(data []byte) (*harnessv1.BlobRef, error) { return h.b.log.PutBlob(h.b.ctx, h.run, data) }))
}

func TestCustomModesAreFoundWhereverTheyAreStored(t *testing.T) {
	b := newBed(t)
	custom := []*harnessv1.ModeSpec{{Name: "careful", Description: strings.Repeat("Take care. ", 80), ReadOnly: true}}
	r := b.start("r1", "do it")
	r.Spec.Agent.Modes = custom
	_, err := b.client.StartRun(b.ctx, r)
	b.must(err)
	b.must(b.mode("r1", "m0", "careful")) // before repair has processed the run
	b.refused(b.mode("r1", "m1", "hasty"), codes.InvalidArgument, "INVALID_FIELD")

	h := b.openRun("r1")
	h.step("turn", func(s *harnessv1.Step) {
		s.Snapshot.Definition = &harnessv1.Definition{Modes: custom}
		h.pack(s.Snapshot)
	})
	if !runstate.HasPackedParts(h.snapshot) {
		t.Fatal("the definition is not stored elsewhere")
	}
	b.must(b.mode("r1", "m2", "careful"))
	b.must(b.mode("r1", "m3", "plan"))
	err = b.mode("r1", "m4", "hasty")
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	if !strings.Contains(err.Error(), "must be one of plan, execute, careful") {
		t.Errorf("the modes are not listed: %v", err)
	}
	b.must(b.replan("r1", "p1", "the first plan is too long"))
	h.holds(4)

	got, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	var kinds []string
	for _, w := range got.GetWaiting() {
		kinds = append(kinds, w.GetKind())
	}
	if !slices.Equal(kinds, []string{"mode_change", "mode_change", "mode_change", "replan"}) {
		t.Errorf("waiting are %q", kinds)
	}
}

func TestAnEndedRunAcceptsNoModeBeforeAMessage(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").end(harnessv1.RunStatus_RUN_STATUS_DONE)
	b.refused(b.mode("r1", "m1", "plan"), codes.FailedPrecondition, "RUN_ENDED")
	b.refused(b.replan("r1", "p1", ""), codes.FailedPrecondition, "RUN_ENDED")
	h.holds(0)
	_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1",
		Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline("go on")}}})
	b.must(err)
	b.must(b.mode("r1", "m2", "plan"))
	b.must(b.replan("r1", "p2", ""))
	h.holds(3)
}

func TestAStreamChangesTheModeAndRequestsAPlan(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").step("turn", nil)
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	stream, err := b.client.Run(ctx)
	b.must(err)
	for _, r := range []*harnessv1.RunRequest{
		{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{Namespace: b.namespace, RunId: "r1"}}},
		{RequestId: "m1", Request: &harnessv1.RunRequest_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "plan"}}},
		{RequestId: "m2", Request: &harnessv1.RunRequest_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "hasty"}}},
		{RequestId: "p1", Request: &harnessv1.RunRequest_Replan{Replan: &harnessv1.ReplanRequest{Reason: "why"}}},
	} {
		b.must(stream.Send(r))
	}
	var receipts []string
	for len(receipts) < 3 {
		resp, err := stream.Recv()
		b.must(err)
		if resp.GetUpdate().GetReceipt() != nil {
			receipts = append(receipts, line(resp.GetUpdate()))
		}
	}
	if !slices.Equal(receipts, []string{"receipt m1 ", "receipt m2 INVALID_FIELD", "receipt p1 "}) {
		t.Errorf("got %q", receipts)
	}
	h.holds(2)
}

func TestAnswersToReviewsAndQuestionsOfTheContract(t *testing.T) {
	b := newBed(t)
	question := runstate.ContractCallID("colour", 9)
	h := b.started("r1").park("review", awaited("v1", "review"), awaited("v2", "review"), awaited("v3", "review"),
		&harnessv1.PendingCall{CallId: question, Tool: runstate.ContractQuestion, Kind: "question", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
			Why: "Which colour?", Arguments: content.Inline(`{"question":"Which colour?"}`)})
	pending, err := b.client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	if n := len(pending.GetPending()); n != 4 || pending.GetPending()[3].GetCall().GetCallId() != question {
		t.Fatalf("got %v", pending)
	}
	_, err = b.answer("r1", "q1", question, "blue")
	b.must(err)
	_, err = b.answer("r1", "q2", question, "green")
	b.refused(err, codes.AlreadyExists, "CALL_ANSWERED")

	_, err = b.approve("r1", "a1", "v1")
	b.must(err)
	_, err = b.answer("r1", "a2", "v2", "it went wrong") // without is_error
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	failed := func(id, call string) error {
		_, err := b.client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: b.namespace, RunId: "r1", RequestId: id,
			Input: &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: call, Result: content.Inline("no"), IsError: true}}})
		return err
	}
	b.must(failed("a3", "v2"))
	b.refused(failed("a4", "v1"), codes.AlreadyExists, "CALL_ANSWERED")
	_, err = b.approve("r1", "a5", "v2")
	b.refused(err, codes.AlreadyExists, "CALL_ANSWERED")
	_, err = b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	h.holds(4)
}

// A call whose hooks have not returned may still be denied, so it accepts no answer.
func TestCallsAcceptAnswersAfterTheirHooks(t *testing.T) {
	b := newBed(t)
	ask := &harnessv1.PreparedCall{CallId: "c1", Tool: "run_command", Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_ASK}
	h := b.started("r1").step("turn", nil)
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{
		Calls: []*harnessv1.PreparedCall{ask}, Unjudged: true}}}, nil)
	_, err := b.approve("r1", "a1", "c1")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_CallsJudged{CallsJudged: &harnessv1.CallsJudged{Calls: []*harnessv1.PreparedCall{ask}}}}, nil)
	_, err = b.approve("r1", "a2", "c1")
	b.must(err)
	h.holds(1)
}

// work sets work items and a definition that are stored outside the step.
func work(s *harnessv1.Snapshot) {
	long := strings.Repeat("x", 3000)
	s.WorkItemLedger = &harnessv1.WorkItemLedger{LastNumber: 2, Items: []*harnessv1.WorkItem{
		{Id: "w1", Title: "Report", Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE, Artifact: content.Inline(long), ArtifactDigest: content.Digest([]byte(long))},
		{Id: "w2", Title: "Audit", Notes: long[:500]},
	}}
	s.CoverageLedger = &harnessv1.CoverageLedger{Coverage: &harnessv1.Coverage{Met: 1, Total: 2, Unmet: []string{"cites"}}, TurnNumber: 3}
	s.TaskContract = &harnessv1.TaskContract{Goal: long, RequiredOutputs: []*harnessv1.RequiredOutput{{Id: "report"}, {Id: "cites"}}}
	s.Definition = &harnessv1.Definition{Jit: []*harnessv1.JitRule{{Id: "long", When: "turn > 1", Text: long}}}
}

func TestAStateIsShownWithAllOfItsParts(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	want := proto.CloneOf(h.snapshot)
	work(want)
	h.step(runlog.Park, func(s *harnessv1.Step) {
		work(s.Snapshot)
		h.pack(s.Snapshot)
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		s.Snapshot.StopReason = &harnessv1.StopReason{Kind: "interrupted"}
	})
	if !runstate.HasPackedParts(h.snapshot) {
		t.Fatal("nothing is stored elsewhere")
	}
	state, err := b.client.GetState(b.ctx, &harnessv1.GetStateRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	s := state.GetSnapshot()
	if !slices.EqualFunc(s.GetWorkItemLedger().GetItems(), want.GetWorkItemLedger().GetItems(), func(a, b *harnessv1.WorkItem) bool { return proto.Equal(a, b) }) ||
		s.GetTaskContract().GetGoal() != want.GetTaskContract().GetGoal() || s.GetDefinition().GetJit()[0].GetText() != want.GetDefinition().GetJit()[0].GetText() {
		t.Errorf("got %v", s)
	}
	before, err := b.client.GetState(b.ctx, &harnessv1.GetStateRequest{Namespace: b.namespace, RunId: "r1", Version: 1})
	b.must(err)
	if before.GetSnapshot().GetWorkItemLedger() != nil {
		t.Errorf("at version 1: %v", before)
	}

	// The result of a park has the deliverables, for GetRun and for WatchRun.
	run, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	made := run.GetResult().GetDeliverables()
	if len(made) != 1 || made[0].GetTitle() != "Report" || run.GetResult().GetCoverage().GetMet() != 1 {
		t.Errorf("got %v", run.GetResult())
	}
	watch, err := b.client.WatchRun(b.ctx, &harnessv1.WatchRunRequest{Namespace: b.namespace, RunId: "r1", Until: harnessv1.WatchUntil_WATCH_UNTIL_NOW})
	b.must(err)
	for {
		resp, err := watch.Recv()
		b.must(err)
		if result := resp.GetUpdate().GetResult(); result != nil {
			if !proto.Equal(result, run.GetResult()) {
				t.Errorf("a watcher receives %v", result)
			}
			break
		}
	}
	if !runstate.HasPackedParts(h.snapshot) {
		t.Error("the stored record was changed")
	}
}

// lossy is a log that has lost its blobs.
type lossy struct{ gatewayserver.Log }

func (lossy) Blob(context.Context, runlog.Run, string) ([]byte, error) {
	return nil, errors.New("the disk is gone")
}

func TestStatusOfARunWithLostParts(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) { c.Log = lossy{c.Log} })
	h := b.started("r1")
	h.step(runlog.Park, func(s *harnessv1.Step) {
		work(s.Snapshot)
		h.pack(s.Snapshot)
		s.Snapshot.StopReason = &harnessv1.StopReason{Kind: "interrupted"}
	})
	run, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	if run.GetResult().GetReason().GetKind() != "interrupted" || len(run.GetResult().GetDeliverables()) != 0 {
		t.Errorf("got %v", run.GetResult())
	}
	_, err = b.client.GetState(b.ctx, &harnessv1.GetStateRequest{Namespace: b.namespace, RunId: "r1"})
	b.refused(err, codes.Internal, "")
}

func TestToolsThatFillTheWindowStartNoRun(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) { c.Tools = hosting("read_file", strings.Repeat("word ", 6000)) })
	for _, c := range []struct {
		window uint32
		code   codes.Code
	}{{4000, codes.InvalidArgument}, {20_000, codes.OK}} {
		r := b.start(fmt.Sprint("r", c.window), "do it")
		r.Spec.Config = &harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{MaxInputTokens: &c.window}}
		_, err := b.client.StartRun(b.ctx, r)
		if status.Code(err) != c.code || err != nil && !strings.Contains(err.Error(), "spec.config.context.max_input_tokens: the system prompt has ") {
			t.Errorf("with a window of %d: %v", c.window, err)
		}
	}
}

func TestAContractThatCannotBeVerifiedStartsNoRun(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Tools = hosting("read_file", "run_command")
	})
	start := func(change func(*harnessv1.RunSpec)) error {
		r := b.start("r1", "do it")
		change(r.Spec)
		_, err := b.client.StartRun(b.ctx, r)
		return err
	}
	b.refused(start(func(s *harnessv1.RunSpec) {
		s.Contract = &harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{{Id: "x",
			Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT, Pattern: "("}}}}
	}), codes.InvalidArgument, "INVALID_FIELD")
	b.refused(start(func(s *harnessv1.RunSpec) {
		s.Agent.Hooks = []*harnessv1.Hook{{Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, Callback: true, Tools: []string{"runcommand"}}}
	}), codes.InvalidArgument, "INVALID_FIELD")
	b.refused(start(func(s *harnessv1.RunSpec) {
		s.Config = &harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{Durability: []*harnessv1.ToolDurability{
			{Tool: "runcommand", Durability: harnessv1.Durability_DURABILITY_EPHEMERAL},
		}}}
	}), codes.InvalidArgument, "INVALID_FIELD")
	_, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
	b.must(start(func(s *harnessv1.RunSpec) {
		s.Agent.Tools = []*harnessv1.ToolRule{{Name: "work_item_add", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}}
		s.Contract = &harnessv1.TaskContract{Goal: "g", Requirements: []string{"It is good"}}
	}))
}
