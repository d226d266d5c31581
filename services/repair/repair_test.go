package repair_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

func spec() *harnessv1.RunSpec {
	return &harnessv1.RunSpec{
		Goal: content.Inline("Fix it"), Workspace: "/w", Workflow: []string{"repair", "turn", "stopdecision"},
		Agent: &harnessv1.AgentSpec{
			Instructions: "You fix bugs.", Model: "nobody:knows", FallbackModels: []string{"nobody:either"},
			Tools: []*harnessv1.ToolRule{{Name: "*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}},
		},
		Config: &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(7)}},
	}
}

func first(s *harnessv1.Snapshot, spec *harnessv1.RunSpec, observed ...*harnessv1.Observation) *harnessv1.StepInput {
	return &harnessv1.StepInput{
		Now: timestamppb.New(noon), Sequence: 99, Observed: observed,
		Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_START, Spec: spec,
		}}},
	}
}

func nothing() []*harnessv1.Observation {
	return []*harnessv1.Observation{
		{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: &harnessv1.InboxBatch{}}},
		{Key: repair.NeedEnvironment, Value: &harnessv1.Observation_Environment{Environment: &harnessv1.Environment{
			Folder:           &harnessv1.WorkspaceFolder{Path: "/w", Device: 1, Inode: 2, Boot: "b"},
			WorkingDirectory: "/w", Platform: "linux/amd64", Listing: "a.go\n",
			InstructionFiles: []*harnessv1.InstructionFile{{Path: "AGENTS.md", Content: "Use tabs.", Digest: "d1"}},
		}}},
	}
}

func begun() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: idle}
}

// TestFirstTrigger makes the state out of the spec.
func TestFirstTrigger(t *testing.T) {
	o := decide(t, first(begun(), spec(), nothing()...))
	if verdict(o) != "turn" || events(o) != "session.start plan.draft plan.commit" {
		t.Errorf("%s: %s", verdict(o), events(o))
	}
	s := o.GetStep().GetSnapshot()
	if s.GetPhase() != executing || s.GetSegment() != 1 || s.GetMaxTurns() != 7 || s.GetTurnCount() != 0 || s.GetFirstSequence() != 99 ||
		s.GetModel() != "nobody:knows" || !slices.Equal(s.GetFallbackModels(), []string{"nobody:either"}) || s.GetWorkspace() != "/w" ||
		s.GetGoalPreview() != "Fix it" || !proto.Equal(s.GetDefinition(), &harnessv1.Definition{Tools: spec().GetAgent().GetTools()}) || !s.GetRunningSince().AsTime().Equal(noon) || !s.GetCreateTime().AsTime().Equal(noon) {
		t.Errorf("the state is %v", s)
	}
	if files := s.GetInstructionFiles(); len(files) != 1 || files[0].GetPath() != "AGENTS.md" || files[0].GetDigest() != "d1" {
		t.Errorf("the model has seen %v", files)
	}
	if !proto.Equal(s.GetConfig(), runstate.Resolve(spec().GetConfig(), 0)) {
		t.Errorf("the config is %v", s.GetConfig())
	}
	var phases []string
	for _, c := range o.GetStep().GetPhaseChanges() {
		phases = append(phases, strings.TrimPrefix(c.GetTo().String(), "PHASE_"))
	}
	if fmt.Sprint(phases) != "[PLANNING EXECUTING]" {
		t.Errorf("phases %v", phases)
	}
	messages := o.GetAppended()
	if len(messages) != 2 || messages[0].GetRole() != harnessv1.Role_ROLE_SYSTEM || messages[1].GetKind() != harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT ||
		!messages[0].GetKept() || !messages[1].GetKept() || content.Text(messages[1].GetContent()) != "Fix it" {
		t.Errorf("the conversation begins with %v", messages)
	}
	if len(o.GetStep().GetObserved()) != 2 {
		t.Error("what was observed is not recorded")
	}
	start := o.GetEvents()[0].GetSessionStart()
	if start.GetSegment() != 1 || start.GetGoal() != "Fix it" || o.GetEvents()[0].GetMaxTurns() != 7 || o.GetEvents()[2].GetPlanCommit().GetPlan() != "Fix it" {
		t.Errorf("events %v", o.GetEvents())
	}
}

// TestASubAgentWithTheNameOfATool fails the run before its first turn: the model could not tell them apart.
func TestASubAgentWithTheNameOfATool(t *testing.T) {
	agents := []*harnessv1.SubAgent{{Name: "look", Description: "d", Instructions: "i"}}
	hosted, declared, fine := nothing(), spec(), spec()
	hosted[1].GetEnvironment().Tools = []*harnessv1.ToolSpec{{Name: "look", ParametersSchema: "{}"}}
	declared.ClientTools = []*harnessv1.ToolSpec{{Name: "look", ParametersSchema: "{}"}}
	fine.Agent.Agents, declared.Agent.Agents = agents, agents
	for name, in := range map[string]*harnessv1.StepInput{"of the tool host": first(begun(), fine, hosted...), "of a client": first(begun(), declared, nothing()...)} {
		failure := decide(t, in).GetStep().GetTurnComplete().GetError()
		if failure.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED || !strings.Contains(failure.GetMessage(), "look") {
			t.Errorf("%s: %v", name, failure)
		}
	}
	if o := decide(t, first(begun(), fine, nothing()...)); verdict(o) != "turn" {
		t.Errorf("another name: %s", verdict(o))
	}
}

// TestFirstTriggerWithACrowdedInbox: what came before the first turn is taken in
// after the start.
func TestFirstTriggerWithACrowdedInbox(t *testing.T) {
	observed := nothing()
	interrupted := interrupt()
	interrupted.Id = "i"
	observed[0].GetInbox().Items, observed[0].GetInbox().Cursor = []*harnessv1.InboxItem{interrupted}, 50
	o := decide(t, first(begun(), spec(), observed...))
	if verdict(o) != "park interrupted" || events(o) != "session.start plan.draft plan.commit input.accepted run.interrupted session.pause" {
		t.Errorf("%s: %s", verdict(o), events(o))
	}
}

func TestNeeds(t *testing.T) {
	inbox := nothing()[:1]
	for _, c := range []struct {
		name string
		in   *harnessv1.StepInput
		want []string
	}{
		{"start", first(begun(), spec()), []string{"inbox", "environment"}},
		{"start, inbox seen", first(begun(), spec(), inbox...), []string{"environment"}},
		{"go on", &harnessv1.StepInput{Step: &harnessv1.Step{Snapshot: running(), Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{
			Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE,
		}}}}, []string{"inbox"}},
	} {
		out, err := repair.Decide(c.in)
		if err != nil || !slices.Equal(out.GetNeeds().GetKeys(), c.want) {
			t.Errorf("%s: %v, %v", c.name, out, err)
		}
	}
}

// TestRefusedInputs are those that no executor writes: errors, never panics.
func TestRefusedInputs(t *testing.T) {
	odd := parked("interrupted")
	odd.StopReason = nil
	for name, in := range map[string]*harnessv1.StepInput{
		"nothing":               nil,
		"another message":       {Step: &harnessv1.Step{Snapshot: running(), Message: &harnessv1.Step_TurnComplete{}}},
		"no snapshot":           first(nil, spec(), nothing()...),
		"no spec":               first(begun(), nil, nothing()...),
		"a second start":        first(running(), spec(), nothing()...),
		"a start of the ended":  first(finished(), spec(), nothing()...),
		"resting for no reason": {Observed: nothing(), Step: &harnessv1.Step{Snapshot: odd, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{}}}},
	} {
		if out, err := repair.Decide(in); err == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
}

// TestReopened: a new segment with new counts and the same history.
func TestReopened(t *testing.T) {
	s := finished()
	s.TurnCount, s.MaxTurns, s.Spent.ToolCalls, s.Spent.ToolCallsTotal = 50, 50, 300, 300
	got := drain(t, s, userMessage("now this")).GetStep().GetSnapshot()
	if got.GetSegment() != 2 || got.GetMaxTurns() != 100 || got.GetSpent().GetToolCalls() != 0 || got.GetSpent().GetToolCallsTotal() != 300 ||
		got.GetGoalPreview() != "now this" || got.GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING || got.GetStopReason() != nil {
		t.Errorf("reopened as %v", got)
	}
	resumed := drain(t, cancelled(), resume(nil))
	if got := resumed.GetStep().GetSnapshot(); got.GetSegment() != 2 || got.GetGoalPreview() != "the goal" || len(resumed.GetAppended()) != 1 {
		t.Errorf("resumed as %v", resumed)
	}
}

// TestSystemPrompt holds all of its parts, in order, and nothing for missing ones.
func TestSystemPrompt(t *testing.T) {
	prompt := repair.SystemPrompt(spec(), runstate.Resolve(nil, 0), nothing()[1].GetEnvironment(), nil)
	from := 0
	for _, part := range []string{"You fix bugs.", "working directory: /w", "linux/amd64", "a.go", "Instructions from AGENTS.md\nUse tabs.", "work_complete"} {
		at := strings.Index(prompt[from:], part)
		if at < 0 {
			t.Fatalf("%q is missing or out of order:\n%s", part, prompt)
		}
		from += at
	}
	bare := repair.SystemPrompt(nil, runstate.Resolve(nil, 0), nil, nil)
	if strings.Contains(bare, "Environment") || strings.HasPrefix(bare, "\n") || !strings.Contains(bare, "work_complete") {
		t.Errorf("without agent and workspace:\n%s", bare)
	}
	if empty := repair.SystemPrompt(nil, runstate.Resolve(nil, 0), &harnessv1.Environment{WorkingDirectory: "/w"}, nil); !strings.Contains(empty, "(empty)") {
		t.Errorf("an empty workspace:\n%s", empty)
	}
}

// TestWakingStep: one rule for all messages that can wake a run.
func TestWakingStep(t *testing.T) {
	entry := func(sequence uint64, to string, cursor uint64) runlog.Entry {
		rec := &harnessv1.Record{Version: sequence, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{
			To: to, Snapshot: &harnessv1.Snapshot{InboxCursor: cursor, GoalPreview: "kept"},
		}}}
		return runlog.Entry{Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	}
	journal := runlog.Entry{Sequence: 30, Record: &harnessv1.Record{Body: &harnessv1.Record_Journal{}}}
	for _, c := range []struct {
		name         string
		newest, step runlog.Entry
		inbox        uint64
		wakes        bool
	}{
		{"parked, nothing came", entry(20, runlog.Park, 0), entry(20, runlog.Park, 0), 0, false},
		{"parked, all is drained", entry(20, runlog.Park, 15), entry(20, runlog.Park, 15), 15, false},
		{"parked, an item beyond the cursor", entry(20, runlog.Park, 15), entry(20, runlog.Park, 15), 16, true},
		{"parked, an item behind the park", entry(20, runlog.Park, 15), entry(20, runlog.Park, 15), 25, true},
		{"ended, an item", entry(20, runlog.End, 15), entry(20, runlog.End, 15), 16, true},
		{"ended, nothing new", entry(20, runlog.End, 16), entry(20, runlog.End, 16), 16, false},
		{"running, an item", entry(20, "turn", 15), entry(20, "turn", 15), 16, false},
		{"woken already", entry(20, "repair", 15), entry(20, "repair", 15), 16, false},
		{"in a turn", journal, entry(20, "turn", 15), 31, false},
		{"a journal behind a park", journal, entry(20, runlog.Park, 15), 31, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := proto.CloneOf(c.step.Record)
			step := repair.WakingStep(runlog.View{Newest: c.newest, Step: c.step, InboxSequence: c.inbox})
			if (step != nil) != c.wakes {
				t.Fatalf("woken by %v", step)
			}
			if step == nil {
				return
			}
			trigger := step.GetRepairTrigger()
			if step.GetTo() != "repair" || trigger.GetCause() != harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE || trigger.GetInboxSequence() != c.inbox ||
				!proto.Equal(step.GetSnapshot(), c.step.Record.GetStep().GetSnapshot()) {
				t.Errorf("woken by %v", step)
			}
			step.Snapshot.GoalPreview = "changed"
			if !proto.Equal(c.step.Record, before) {
				t.Error("the stored record is shared")
			}
		})
	}
}

// TestClockStopsWhileParked: only time in which a run runs is spent.
func TestClockStopsWhileParked(t *testing.T) {
	o := drain(t, running(), interrupt())
	if s := o.GetStep().GetSnapshot(); s.GetSpent().GetActive().AsDuration() != time.Minute || s.GetRunningSince() != nil {
		t.Errorf("parked with %v", s)
	}
	if s := drain(t, o.GetStep().GetSnapshot(), resume(nil)).GetStep().GetSnapshot(); s.GetSpent().GetActive().AsDuration() != time.Minute || !s.GetRunningSince().AsTime().Equal(noon) {
		t.Errorf("resumed with %v", s)
	}
}
