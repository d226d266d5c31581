package repair_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

func qualitySpec(kind string) *harnessv1.RunSpec {
	s := spec()
	s.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true), Model: "openai:small"}
	s.Task = &harnessv1.Task{Kind: kind}
	return s
}

// classified lets repair decide with answers by purpose, an error if there is none. rounds are the purposes of the jobs that
// each round needed.
func classified(t *testing.T, in *harnessv1.StepInput, answers map[string]string) (o *harnessv1.Outcome, rounds string) {
	t.Helper()
	var all []string
	for range 5 {
		out, err := repair.Decide(in)
		if err != nil {
			t.Fatal(err)
		}
		if out.GetOutcome() != nil {
			return decide(t, in), strings.Join(all, ", then ")
		}
		if key := out.GetNeeds().GetKeys()[0]; key == repair.NeedProfile {
			in.Observed = append(in.Observed, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Profile{Profile: &harnessv1.ProfileState{}}})
			continue
		}
		var round []string
		for _, r := range out.GetNeeds().GetJobs() {
			round = append(round, r.GetPurpose())
			state := &harnessv1.JobState{Ended: true, Text: answers[r.GetPurpose()], Usage: &harnessv1.Usage{InputTokens: 10}}
			if state.GetText() == "" {
				state.Error = "overloaded"
			}
			in.Observed = append(in.Observed, &harnessv1.Observation{Key: agent.KeyJob + r.GetKey(), Value: &harnessv1.Observation_Job{Job: state}})
		}
		if len(round) == 0 || len(round) != len(out.GetNeeds().GetKeys()) {
			t.Fatalf("got %v", out)
		}
		all = append(all, strings.Join(round, "+"))
	}
	t.Fatal("needs more and more")
	return nil, ""
}

const (
	simple      = `{"level":"SIMPLE","reason":"one step","subtask_count":1}`
	complexWork = `{"level":"COMPLEX","reason":"much","subtask_count":4}`
	draft       = `{"kind":"drafting","confidence":0.9}`
	plans       = `{"plans":[{"description":"Fix","prompt_modifier":"Read first.","subtasks":["Look","Change"],"suggested_workflow":"drafting","estimated_turns":1},` +
		`{"description":"Other","prompt_modifier":"x","subtasks":[],"suggested_workflow":"chat","estimated_turns":9}]}`
)

// TestWorkIsClassified: level and kind at the same time, a given kind is not classified, and plans are made for complex work
// only. Fallbacks are reported.
func TestWorkIsClassified(t *testing.T) {
	both := quality.PurposeClassify + "+" + quality.PurposeIntent
	for _, c := range []struct {
		name, given string
		answers     map[string]string
		rounds      string
		kind, level string
		told        string
		reason      string
		kindReason  string
		planReason  string
	}{
		{"simple", "", map[string]string{quality.PurposeClassify: simple, quality.PurposeIntent: draft}, both, "drafting", "SIMPLE", "", "one step", "", ""},
		{"given", "synthesis", map[string]string{quality.PurposeClassify: simple}, quality.PurposeClassify, "synthesis", "SIMPLE", "", "one step", "", ""},
		{"no answer", "", nil, both, "chat", "SIMPLE", "", quality.Fallback + "overloaded", quality.Fallback + "overloaded", ""},
		{"not sure", "", map[string]string{quality.PurposeClassify: simple, quality.PurposeIntent: `{"kind":"drafting","confidence":0.4}`}, both, "chat", "SIMPLE", "", "one step",
			quality.Fallback + "confidence 0.40 that the kind is drafting is below 0.5", ""},
		{"complex", "", map[string]string{quality.PurposeClassify: complexWork, quality.PurposeIntent: draft, quality.PurposePlan: plans}, both + ", then " + quality.PurposePlan,
			"drafting", "COMPLEX", "Fix\nRead first.\n1. Look\n2. Change", "much", "", ""},
		{"complex, without plans", "drafting", map[string]string{quality.PurposeClassify: complexWork}, quality.PurposeClassify + ", then " + quality.PurposePlan,
			"drafting", "COMPLEX", "Execute drafting workflow directly", "much", "", quality.Fallback + "overloaded"},
		{"complex, with an answer that has no plan", "drafting", map[string]string{quality.PurposeClassify: complexWork, quality.PurposePlan: "{}"},
			quality.PurposeClassify + ", then " + quality.PurposePlan, "drafting", "COMPLEX", "Execute drafting workflow directly", "much", "", quality.Fallback + "the answer has no plan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, rounds := classified(t, first(begun(), qualitySpec(c.given), nothing()...), c.answers)
			q := o.GetStep().GetSnapshot().GetQuality()
			if rounds != c.rounds || q.GetKind() != c.kind || q.GetLevel() != c.level || q.GetAttempt() != 1 || q.GetIteration() != 1 {
				t.Errorf("asked %s: %v", rounds, q)
			}
			want := "session.start quality.complexity plan.draft plan.commit"
			if c.told != "" {
				want = "session.start quality.complexity quality.plan_selected plan.draft plan.commit"
			}
			if got := events(o); !strings.HasPrefix(got, want) {
				t.Fatalf("events %s", got)
			}
			if e := o.GetEvents()[1].GetQualityComplexity(); e.GetReason() != c.reason || e.GetWorkflowType() != c.kind || e.GetLevel() != c.level {
				t.Errorf("reported %v", e)
			} else if e.GetKindReason() != c.kindReason {
				t.Errorf("the kind is chat because %q", e.GetKindReason())
			}
			if got := o.GetEvents()[2].GetQualityPlanSelected().GetReason(); got != c.planReason {
				t.Errorf("the plan is no model's because %q", got)
			}
			messages := o.GetAppended()
			if !strings.Contains(content.Text(messages[0].GetContent()), "What good work is here") {
				t.Errorf("the system prompt is %v", messages[0])
			}
			if planned := len(messages) > 2 && strings.Contains(content.Text(messages[2].GetContent()), "The plan for this work:\n"+c.told); planned != (c.told != "") {
				t.Errorf("the model reads %v", messages)
			}
			if used := q.GetUsage().GetInputTokens(); used == 0 || used != o.GetStep().GetSnapshot().GetSpent().GetUsage().GetInputTokens() {
				t.Errorf("used %d", used)
			}
		})
	}
}

// TestNoModelIsCalled while the run is stopped, with a used-up budget, or where work is not judged.
func TestNoModelIsCalled(t *testing.T) {
	budget := qualitySpec("")
	budget.Config.Budgets = &harnessv1.Budgets{ToolCalls: proto.Uint32(0)}
	for name, c := range map[string]struct {
		spec *harnessv1.RunSpec
		item *harnessv1.InboxItem
		why  string
	}{
		"interrupt": {qualitySpec(""), interrupt(), "stopped"}, "cancel": {qualitySpec(""), cancel(), "stopped"}, "budget": {budget, nil, "budget"}, "off": {spec(), nil, ""},
	} {
		seen := nothing()
		if c.item != nil {
			c.item.Id, c.item.Sequence = "i", 1
			seen[0].GetInbox().Items, seen[0].GetInbox().Cursor = []*harnessv1.InboxItem{c.item}, 1
		}
		o, rounds := classified(t, first(begun(), c.spec, seen...), nil)
		if rounds != "" || strings.Contains(events(o), "quality") != (c.why != "") || (o.GetStep().GetSnapshot().GetQuality() != nil) != (c.why != "") {
			t.Errorf("%s: asked %s, events %s", name, rounds, events(o))
		}
		if c.why != "" && !strings.Contains(o.GetEvents()[1].GetQualityComplexity().GetReason(), c.why) {
			t.Errorf("%s: %v", name, o.GetEvents()[1])
		}
	}
}

// TestNextSegmentIsClassifiedAgain: the agent reads what its kind requires.
func TestNextSegmentIsClassifiedAgain(t *testing.T) {
	s := finished()
	s.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true), Model: "openai:small"}
	s.Quality = &harnessv1.QualityState{Kind: "chat", Level: "COMPLEX", Attempt: 3, Checkpoints: []uint32{500}, Verdict: &harnessv1.QualityVerdict{}}
	s.WorkItemLedger = &harnessv1.WorkItemLedger{
		Artifacts: []*harnessv1.Artifact{{Id: "a1", Kind: "document"}, {Id: "a2", Kind: "insight"}}, Attempts: []*harnessv1.AttemptArtifacts{{Attempt: 3}},
	}
	m := userMessage("Write a letter")
	m.Id, m.Sequence = "i", 11
	in := &harnessv1.StepInput{
		Now: timestamppb.New(noon), Sequence: 99,
		Step:     &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}},
		Observed: []*harnessv1.Observation{{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: &harnessv1.InboxBatch{Cursor: 11, Items: []*harnessv1.InboxItem{m}}}}},
	}
	o, rounds := classified(t, in, map[string]string{quality.PurposeClassify: simple, quality.PurposeIntent: draft})
	q := o.GetStep().GetSnapshot().GetQuality()
	if rounds != quality.PurposeClassify+"+"+quality.PurposeIntent || q.GetKind() != "drafting" || q.GetAttempt() != 1 || q.GetVerdict() != nil || len(q.GetCheckpoints()) > 0 {
		t.Errorf("asked %s: %v", rounds, q)
	}
	saved := o.GetStep().GetSnapshot().GetWorkItemLedger()
	if len(saved.GetAttempts()) > 0 || len(saved.GetArtifacts()) != 2 || !saved.GetArtifacts()[0].GetEarlier() || !saved.GetArtifacts()[1].GetEarlier() {
		t.Errorf("the segment begins with %v", saved)
	}
	told := false
	for _, m := range o.GetAppended() {
		told = told || m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE && strings.Contains(content.Text(m.GetContent()), "What it must have:")
	}
	if !told {
		t.Errorf("the model reads %v", o.GetAppended())
	}
}

// TestArtifactsOfUnjudgedSegmentsAreUnchanged: without quality another segment leaves no mark in them.
func TestArtifactsOfUnjudgedSegmentsAreUnchanged(t *testing.T) {
	s := finished()
	s.WorkItemLedger = &harnessv1.WorkItemLedger{Artifacts: []*harnessv1.Artifact{{Id: "a1", Kind: "document"}}}
	o, _ := answered(t, s, nil, userMessage("Go on"))
	if got := o.GetStep().GetSnapshot(); got.GetSegment() != 2 || !proto.Equal(got.GetWorkItemLedger(), s.GetWorkItemLedger()) {
		t.Errorf("segment %d begins with %v", got.GetSegment(), got.GetWorkItemLedger())
	}
}

// TestKindsHaveTheirPromptsBeforeTheWork: the planner and the preamble of an own kind have the texts that it names.
func TestKindsHaveTheirPromptsBeforeTheWork(t *testing.T) {
	spec := qualitySpec("letter")
	spec.Agent.Kinds = []*harnessv1.WorkKind{{
		Name: "letter", MinOutputChars: 100, Prompts: map[string]string{quality.PromptPreamble: "A letter is short.", quality.PromptPlan: "Plan the letter."},
	}}
	in := first(begun(), spec, nothing()...)
	o, _ := classified(t, in, map[string]string{quality.PurposeClassify: complexWork, quality.PurposePlan: plans})
	if text := content.Text(o.GetAppended()[0].GetContent()); !strings.Contains(text, "A letter is short.\n- An output of at least") {
		t.Errorf("the system prompt is %s", text)
	}
	// The job of the plan has the text of the kind.
	in.Observed = slices.DeleteFunc(in.GetObserved(), func(o *harnessv1.Observation) bool { return strings.HasPrefix(o.GetJob().GetText(), `{"plans"`) })
	out, err := repair.Decide(in)
	if err != nil || len(out.GetNeeds().GetJobs()) != 1 || !strings.HasPrefix(out.GetNeeds().GetJobs()[0].GetSystem(), "Plan the letter.\n\n") {
		t.Errorf("asked %v, %v", out, err)
	}
}
