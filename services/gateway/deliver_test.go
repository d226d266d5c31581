package gateway

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func entry(version uint64, rec *harnessv1.Record) runlog.Entry {
	rec.Version = version
	return runlog.Entry{Run: runlog.Run{Namespace: "n", ID: "r"}, Sequence: 10 * version, Header: runlog.HeaderOf(rec), Record: rec}
}

func TestDeliver(t *testing.T) {
	rec := &harnessv1.Record{
		CommitTime: timestamppb.New(noon),
		Appended: []*harnessv1.Message{
			{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("guidance")},
			{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("text")},
			{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "c1", Content: content.Inline("one")},
			{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "c2", Content: content.Inline("two")},
		},
		Events: []*harnessv1.Event{
			{TurnNumber: 3, MaxTurns: 50, Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{}}},
			{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: "c2"}}},
			{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{CallId: "c1"}}},
			{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{CallId: "c3"}}},
			{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: "c1", Result: content.Inline("its own")}}},
		},
	}
	before := proto.CloneOf(rec)
	before.Version = 7
	events := Deliver(entry(7, rec))
	for i, ev := range events {
		if ev.GetId() != fmt.Sprintf("7-%d", i) || ev.GetVersion() != 7 || !ev.GetTime().AsTime().Equal(noon) {
			t.Errorf("event %d: %v", i, ev)
		}
	}
	got := fmt.Sprint(events[0].GetModelResponse().GetText().GetInline(), events[1].GetToolResult().GetResult().GetInline(),
		events[2].GetToolError().GetError().GetInline(), events[3].GetToolError().GetError().GetInline(), events[4].GetToolResult().GetResult().GetInline())
	if got != "texttwooneits own" || events[0].GetTurnNumber() != 3 || events[0].GetMaxTurns() != 50 {
		t.Errorf("got %q", got)
	}
	if !proto.Equal(rec, before) {
		t.Error("the record was changed")
	}
	if Deliver(runlog.Entry{}) != nil {
		t.Error("events of no record")
	}
}

func reasoned(texts ...*harnessv1.Content) []*harnessv1.Part {
	opaque := &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(`"secret"`)}}
	parts := []*harnessv1.Part{{Kind: &harnessv1.Part_Text{Text: 4}}}
	for _, text := range texts {
		parts = append(parts, &harnessv1.Part{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: text}}, Opaque: opaque})
	}
	return parts
}

func TestDeliverFillsTheReasoning(t *testing.T) {
	blob := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte("a long text"))}}
	for name, c := range map[string]struct {
		parts []*harnessv1.Part
		want  *harnessv1.Content
	}{
		"no parts":               {nil, nil},
		"none for people":        {reasoned(nil, content.Inline("")), nil},
		"one":                    {reasoned(content.Inline("hm")), content.Inline("hm")},
		"one of three":           {reasoned(nil, content.Inline("hm"), content.Inline("")), content.Inline("hm")},
		"several":                {reasoned(content.Inline("first"), content.Inline("second\n")), content.Inline("first\n\nsecond\n")},
		"one in a blob":          {reasoned(blob), blob},
		"several, one in a blob": {reasoned(content.Inline("first"), blob), content.Inline("first\n\na long text…")},
	} {
		rec := &harnessv1.Record{
			Appended: []*harnessv1.Message{{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("text"), Parts: c.parts}},
			Events:   []*harnessv1.Event{{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{}}}},
		}
		got := Deliver(entry(7, rec))[0].GetModelResponse()
		if !proto.Equal(got.GetReasoning(), c.want) || got.GetText().GetInline() != "text" {
			t.Errorf("%s: %v", name, got)
		}
		if rec.GetEvents()[0].GetModelResponse().GetReasoning() != nil {
			t.Errorf("%s: the record was changed", name)
		}
	}
}

// TestASubAgentHasItsParentFromItsFirstStep: the snapshot of the first step has none yet.
func TestASubAgentHasItsParentFromItsFirstStep(t *testing.T) {
	parent := &harnessv1.Parent{RunId: "p", RootRunId: "r"}
	step := runstate.FirstStep("repair", &harnessv1.RunSpec{}, nil, "", noon)
	step.GetRepairTrigger().Parent = parent
	first := entry(1, &harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}})
	later := entry(2, &harnessv1.Record{Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: "turn", Snapshot: &harnessv1.Snapshot{Parent: parent}}}})
	for _, e := range []runlog.Entry{first, later} {
		if run := RunOf(e, 1); run.GetParentRunId() != "p" || run.GetRootRunId() != "r" {
			t.Errorf("version %d: %v", e.Header.Version, run)
		}
		x := &Index{}
		x.Apply(e)
		if roots, _, _ := x.List(nil, nil, false, Place{}, 1); len(roots) != 0 {
			t.Errorf("version %d: listed as a root", e.Header.Version)
		}
	}
}

func TestRunAndResult(t *testing.T) {
	snapshot := &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, StopReason: &harnessv1.StopReason{Kind: "kind"},
		TurnCount: 3, MaxTurns: 50, GoalPreview: "goal", Segment: 2, Model: "a:b", CreateTime: timestamppb.New(noon),
		Answer: content.Inline("answer"), Summary: content.Inline("summary"),
		Spent:            &harnessv1.Spent{ToolCallsTotal: 9, Usage: &harnessv1.Usage{InputTokens: 5}, Active: durationpb.New(time.Minute)},
		PendingToolCalls: []*harnessv1.PendingCall{{CallId: "c1", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}, {CallId: "c2"}},
	}
	step := func(to string, change func(*harnessv1.Step)) runlog.Entry {
		s := &harnessv1.Step{To: to, Snapshot: proto.CloneOf(snapshot)}
		if change != nil {
			change(s)
		}
		return entry(4, &harnessv1.Record{CommitTime: timestamppb.New(noon), Body: &harnessv1.Record_Step{Step: s}})
	}
	for name, c := range map[string]struct {
		entry  runlog.Entry
		status harnessv1.RunStatus
		kind   string
		result bool
	}{
		"woken, not looked at yet": {step("repair", nil), harnessv1.RunStatus_RUN_STATUS_RUNNING, "", false},
		"park": {step("park", func(s *harnessv1.Step) {
			s.Message = &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: &harnessv1.StopReason{Kind: "approval"}, Pending: s.GetSnapshot().GetPendingToolCalls()[:1]}}
		}), harnessv1.RunStatus_RUN_STATUS_PARKED, "approval", true},
		"park with work": {step("park", func(s *harnessv1.Step) {
			s.Snapshot.PendingToolCalls = s.GetSnapshot().GetPendingToolCalls()[:1]
			s.Snapshot.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{
				Id: "w1", Title: "Report", Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE, Artifact: content.Inline("text"), ArtifactDigest: "d"}}}
			s.Snapshot.CoverageLedger = &harnessv1.CoverageLedger{Coverage: &harnessv1.Coverage{Met: 1, Total: 2}}
		}), harnessv1.RunStatus_RUN_STATUS_PARKED, "kind", true},
		"park without its message": {step("park", nil), harnessv1.RunStatus_RUN_STATUS_PARKED, "kind", true},
		"end": {step("end", func(s *harnessv1.Step) {
			s.Message = &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_DONE, Reason: &harnessv1.StopReason{Kind: "agent_done"}}}
		}), harnessv1.RunStatus_RUN_STATUS_DONE, "agent_done", true},
		"end without its message": {step("end", func(s *harnessv1.Step) { s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_FAILED }), harnessv1.RunStatus_RUN_STATUS_FAILED, "kind", true},
	} {
		run, result := RunOf(c.entry, 6), ResultOf(c.entry)
		if run.GetStatus() != c.status || run.GetReason().GetKind() != c.kind || run.GetVersion() != 6 || run.GetTurnCount() != 3 || run.GetGoal() != "goal" || run.GetRunId() != "r" {
			t.Errorf("%s: %v", name, run)
		}
		if (result != nil) != c.result || result.GetReason().GetKind() != c.kind {
			t.Errorf("%s: %v", name, result)
		}
		if made := result.GetDeliverables(); name == "park with work" &&
			(len(made) != 1 || made[0].GetTitle() != "Report" || result.GetCoverage().GetTotal() != 2 || Lacking(c.entry)) {
			t.Errorf("%s: %v", name, result)
		}
		if to := c.entry.Record.GetStep().GetTo(); to == "park" &&
			(len(result.GetPending()) != 1 || result.GetToolCalls() != 9 || result.GetTurnCount() != 3 || result.GetAnswer() == nil || result.GetUsage() == nil || result.GetDuration() == nil) {
			t.Errorf("%s: %v", name, result)
		}
	}
	journal := entry(5, &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{}}})
	if ResultOf(journal) != nil {
		t.Error("a journal record has a result")
	}
}

func TestLacking(t *testing.T) {
	stored := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d", Size: 1}}}
	packed := &harnessv1.Snapshot{WorkItemLedger: &harnessv1.WorkItemLedger{Stored: stored}}
	whole := &harnessv1.Snapshot{WorkItemLedger: &harnessv1.WorkItemLedger{Stored: stored, Items: []*harnessv1.WorkItem{{Id: "w1"}}}}
	of := func(step *harnessv1.Step) bool {
		return Lacking(entry(4, &harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}}))
	}
	for name, c := range map[string]struct {
		step *harnessv1.Step
		want bool
	}{
		"a park":                       {&harnessv1.Step{To: "park", Snapshot: packed}, true},
		"a park with all of its state": {&harnessv1.Step{To: "park", Snapshot: whole}, false},
		"a run that works":             {&harnessv1.Step{To: "turn", Snapshot: packed}, false},
		"an end with its result":       {&harnessv1.Step{To: "end", Snapshot: packed, Message: &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{}}}, false},
	} {
		if got := of(c.step); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
