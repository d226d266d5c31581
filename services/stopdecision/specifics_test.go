package stopdecision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// outcome returns the outcome of a situation after a change of its input.
func outcome(t *testing.T, c situation, change func(*harnessv1.StepInput)) *harnessv1.Outcome {
	t.Helper()
	in := c.input()
	if change != nil {
		change(in)
	}
	out, err := stopdecision.Decide(in)
	if err != nil || out.GetOutcome() == nil {
		t.Fatalf("%+v: %v, %v", c, out, err)
	}
	return out.GetOutcome()
}

// types returns the names of the events.
func types(o *harnessv1.Outcome) []string {
	var names []string
	for _, e := range o.GetEvents() {
		r := e.ProtoReflect()
		names = append(names, string(r.WhichOneof(r.Descriptor().Oneofs().ByName("event")).Name()))
	}
	return names
}

// TestRejectionNamesWhatIsMissing to the model and to observers.
func TestRejectionNamesWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		situation
		names []string
	}{
		{situation{done: true, called: true, contract: "unmet"}, []string{"out", "The output", "there is no file f"}},
		{situation{done: true, called: true, contract: "asks no user"}, []string{"Which?"}},
		{situation{done: true, called: true, items: "open"}, []string{"w2", "Two"}},
		{situation{done: true, called: true, hook: "block"}, []string{"because"}},
		{situation{done: true}, []string{"work_complete", "1 of 3"}},
		{situation{done: true, policy: "strict", retries: "used"}, []string{"work_complete"}},
	} {
		o := outcome(t, c.situation, nil)
		if len(o.GetAppended()) != 1 {
			t.Fatalf("%+v: the model gets %v", c.situation, o.GetAppended())
		}
		text, rejected := content.Text(o.GetAppended()[0].GetContent()), &harnessv1.StopRejected{}
		for _, e := range o.GetEvents() {
			if e.GetStopRejected() != nil {
				rejected = e.GetStopRejected()
			}
		}
		if runstate.MarkGuidance(rejected.GetMessage()) != text {
			t.Errorf("%+v: the model gets %q, observers %q", c.situation, text, rejected.GetMessage())
		}
		for _, name := range c.names {
			if !strings.Contains(text, name) {
				t.Errorf("%+v: %q is not in %q", c.situation, name, text)
			}
		}
		if gap := rejected.GetGap(); (gap != nil) != (c.contract != "") {
			t.Errorf("%+v: the gap is %v", c.situation, gap)
		}
	}
	gap := outcome(t, situation{done: true, called: true, contract: "unmet"}, nil).GetEvents()[1].GetStopRejected().GetGap()
	if u := gap.GetUnmetRequirements(); len(u) != 1 || u[0].GetId() != "out" || u[0].GetDescription() != "The output" || u[0].GetWhy() != "there is no file f" {
		t.Errorf("the gap is %v", gap)
	}
}

// TestRejectionsAreCounted in a row for each kind; those about work_complete in the segment.
func TestRejectionsAreCounted(t *testing.T) {
	items, contract, uncalled := situation{done: true, called: true, items: "open"}, situation{done: true, called: true, contract: "unmet"}, situation{done: true}
	var kind string
	var count, retries uint32
	for i, step := range []struct {
		situation
		count uint32
	}{{items, 1}, {items, 2}, {contract, 1}, {items, 1}, {uncalled, 1}, {items, 1}, {uncalled, 2}, {uncalled, 3}} {
		o := outcome(t, step.situation, func(in *harnessv1.StepInput) {
			s := in.GetStep().GetSnapshot()
			s.RejectedKind, s.RejectedCount, s.WorkCompleteRetries = kind, count, retries
		})
		s := o.GetStep().GetSnapshot()
		kind, count, retries = s.GetRejectedKind(), s.GetRejectedCount(), s.GetWorkCompleteRetries()
		events := o.GetEvents()
		if got := events[len(events)-1].GetStopRejected().GetCount(); got != step.count {
			t.Errorf("rejection %d is counted %d, want %d", i+1, got, step.count)
		}
	}
}

// TestDetailsOfAnEnd: they list the verified gates.
func TestDetailsOfAnEnd(t *testing.T) {
	for _, c := range []struct {
		situation
		want *harnessv1.StopDetails
	}{
		{situation{done: true, called: true}, &harnessv1.StopDetails{Turn: 4, WorkCompleteCalled: true}},
		{situation{done: true, called: true, contract: "met"}, &harnessv1.StopDetails{Turn: 4, WorkCompleteCalled: true, ContractVerified: true}},
		{situation{done: true, called: true, items: "done"}, &harnessv1.StopDetails{Turn: 4, WorkCompleteCalled: true, WorkItemsVerified: true}},
		{situation{done: true, retries: "used", contract: "met", items: "done"}, &harnessv1.StopDetails{Turn: 4, WorkCompleteRetriesExhausted: true, ContractVerified: true, WorkItemsVerified: true}},
		{situation{done: true, called: true, maxTurns: true, contract: "met", items: "done"}, &harnessv1.StopDetails{Turn: 4, WorkCompleteCalled: true}},
	} {
		result := outcome(t, c.situation, nil).GetStep().GetResult()
		if !proto.Equal(result.GetReason().GetDetails(), c.want) {
			t.Errorf("%+v ends with %v, want %v", c.situation, result.GetReason().GetDetails(), c.want)
		}
		if (result.GetCoverage() != nil) != (c.contract != "") || result.GetCoverage().GetMet() != result.GetCoverage().GetTotal() {
			t.Errorf("%+v ends with coverage %v", c.situation, result.GetCoverage())
		}
	}
}

// TestResultHasTheFinalCoverage, whatever ends the run.
func TestResultHasTheFinalCoverage(t *testing.T) {
	for _, c := range []situation{{maxTurns: true}, {loop: "strict 3"}, {stall: true}} {
		for contract, met := range map[string]uint32{"met": 1, "unmet": 0} {
			c.contract = contract
			if c.stall && met == 1 {
				continue // it does not end
			}
			o := outcome(t, c, nil)
			if got := o.GetStep().GetResult().GetCoverage(); got.GetTotal() != 1 || got.GetMet() != met || !slices.Contains(types(o), "contract_evaluated") {
				t.Errorf("%+v ends with %v, events %v", c, got, types(o))
			}
		}
	}
}

// TestDisabledSubsystemsLeaveNoTrace: their state and events stay empty.
func TestDisabledSubsystemsLeaveNoTrace(t *testing.T) {
	off := proto.Bool(false)
	for name, c := range map[string]struct {
		situation
		off func(*harnessv1.LoopConfig)
	}{
		"loops and stalls": {situation{loop: "strict 3", stall: true}, func(c *harnessv1.LoopConfig) { c.DoomLoop.Enabled, c.Stall.Enabled = off, off }},
		"stalls":           {situation{stall: true}, func(c *harnessv1.LoopConfig) { c.Stall.Enabled = off }},
		"the contract":     {situation{done: true, called: true, contract: "unmet"}, func(c *harnessv1.LoopConfig) { c.Contract.Enabled = off }},
		"work items":       {situation{done: true, called: true, items: "open"}, func(c *harnessv1.LoopConfig) { c.WorkItems.Enabled = off }},
		"hooks":            {situation{done: true, called: true, hook: "block"}, func(c *harnessv1.LoopConfig) { c.Hooks.Enabled = off }},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, c.situation, func(in *harnessv1.StepInput) { c.off(in.GetStep().GetSnapshot().GetConfig()) })
			want := "repair"
			if c.done {
				want = "DONE agent_done true"
			}
			if verdict(o) != want || len(o.GetAppended()) > 0 {
				t.Errorf("got %s, the model gets %v", verdict(o), o.GetAppended())
			}
			for _, name := range types(o) {
				if name != "session_complete" {
					t.Errorf("an event %s", name)
				}
			}
		})
	}
}

// TestLoopCorrectionsGetFirmer; the last one announces the end of the run.
func TestLoopCorrectionsGetFirmer(t *testing.T) {
	said := map[string]bool{}
	for n := range uint32(3) {
		o := outcome(t, situation{loop: fmt.Sprintf("strict %d", n)}, nil)
		text := content.Text(o.GetAppended()[0].GetContent())
		e := o.GetEvents()[0].GetDoomLoopDetected()
		if said[text] || !strings.Contains(text, "read_file") || e.GetKind() != "strict" || e.GetLength() != 1 || e.GetRepeats() != 3 ||
			e.GetCorrection() != n+1 || o.GetStep().GetSnapshot().GetDoomLoop().GetCorrections() != n+1 {
			t.Errorf("correction %d: %v, %q", n+1, e, text)
		}
		said[text] = true
	}
	o := outcome(t, situation{loop: "strict 3"}, nil)
	if e := o.GetEvents()[0].GetDoomLoopDetected(); e.GetCorrection() != 0 || len(o.GetAppended()) > 0 {
		t.Errorf("given up with %v", o)
	}
	left := outcome(t, situation{}, func(in *harnessv1.StepInput) { in.GetStep().GetSnapshot().DoomLoop.Corrections = 2 })
	if got := left.GetStep().GetSnapshot().GetDoomLoop().GetCorrections(); got != 0 {
		t.Errorf("a loop that was left has %d corrections", got)
	}
}

// TestAgentStopPayload has the state of the work.
func TestAgentStopPayload(t *testing.T) {
	for _, expression := range []string{
		"turn_count == 4 && max_turns == 10 && mode == 'execute'", "called_work_complete", "tool_usage['read_file'] == 7",
		"work_items.open == 0 && work_items.finished == 1 && work_items.total == 1", "contract.met == 1 && contract.total == 1 && size(contract.unmet) == 0",
		"topic == 'agent_stop' && turn == 4",
	} {
		o := outcome(t, situation{done: true, called: true, contract: "met", items: "done", hook: "block"}, func(in *harnessv1.StepInput) {
			s := in.GetStep().GetSnapshot()
			s.ToolUsage = []*harnessv1.ToolUsage{{Tool: "read_file", Calls: 7}}
			s.Definition.Hooks[0].Cel = expression
		})
		if verdict(o) != "repair agent_stop_hook_blocked" {
			t.Errorf("%s does not hold: %v", expression, o.GetEvents())
		}
	}
}

// TestFirstBlockingHookDecides: the hooks after it are not called.
func TestFirstBlockingHookDecides(t *testing.T) {
	hook := func(id, cel string) *harnessv1.Hook {
		return &harnessv1.Hook{
			Id: id, Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Cel: cel, Action: harnessv1.HookAction_HOOK_ACTION_BLOCK, Reason: "by " + id, Context: "context of " + id,
		}
	}
	o := outcome(t, situation{done: true, called: true, hook: "block"}, func(in *harnessv1.StepInput) {
		in.GetStep().GetSnapshot().Definition.Hooks = []*harnessv1.Hook{hook("a", "false"), hook("b", "true"), hook("c", "true")}
	})
	var said []string
	for _, m := range o.GetAppended() {
		said = append(said, content.Text(m.GetContent()))
	}
	if all := strings.Join(said, "\n"); len(said) != 2 || !strings.Contains(said[0], "context of b") || !strings.Contains(said[1], "by b") || strings.Contains(all, "of a") || strings.Contains(all, "of c") {
		t.Errorf("the model gets %q", said)
	}
}

// TestObservingHooksAreCalledInOrder: on_error before the end, then on_complete
// and session_end; on_pause after the pause.
func TestObservingHooksAreCalledInOrder(t *testing.T) {
	look := func(topic harnessv1.HookTopic, cel string) *harnessv1.Hook {
		return &harnessv1.Hook{Topic: topic, Cel: cel, Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE}
	}
	for _, c := range []struct {
		situation
		hooks []*harnessv1.Hook
		want  string
	}{
		{situation{failure: "failed"}, []*harnessv1.Hook{
			look(harnessv1.HookTopic_HOOK_TOPIC_SESSION_END, "kind == 'failed' && status == 'FAILED' && !accepted"),
			look(harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, "kind == 'failed' && message == 'why'"),
			look(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, "error == 'why'"),
		}, "hook_result session_complete hook_result hook_result"},
		{situation{done: true, called: true}, []*harnessv1.Hook{
			look(harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, "kind == 'agent_done' && accepted"), look(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, "true"),
		}, "session_complete hook_result"},
		{situation{pause: true}, []*harnessv1.Hook{look(harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, "kind == 'review' && message == 'look'")}, "session_pause hook_result"},
		{situation{awaiting: "approval"}, []*harnessv1.Hook{look(harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, "true")}, ""},
	} {
		o := outcome(t, c.situation, func(in *harnessv1.StepInput) {
			in.GetStep().GetSnapshot().Definition = &harnessv1.Definition{Hooks: c.hooks}
		})
		if got := strings.Join(types(o), " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.situation, got, c.want)
		}
	}
}

// TestContractQuestionsParkTheRun: each question is a pending call.
func TestContractQuestionsParkTheRun(t *testing.T) {
	o := outcome(t, situation{done: true, called: true, contract: "asks"}, func(in *harnessv1.StepInput) {
		task := in.GetStep().GetSnapshot().GetTaskContract()
		task.Questions = append(task.Questions, &harnessv1.UserQuestion{Id: "late", Question: "When?", Required: proto.Bool(true)}, &harnessv1.UserQuestion{Id: "idle", Question: "Why?"})
	})
	parked, s := o.GetStep().GetParked(), o.GetStep().GetSnapshot()
	var asked []string
	for _, c := range parked.GetPending() {
		asked = append(asked, c.GetCallId()+" "+c.GetKind()+" "+c.GetWhy())
		if c.GetTool() != "contract_question" || c.GetDeadline() == nil || !proto.Equal(c.GetDeadline(), parked.GetWakeAt()) {
			t.Errorf("asked %v, wakes at %v", c, parked.GetWakeAt())
		}
	}
	if want := []string{"contract:q:7 question Which?", "contract:late:7 question When?"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	if s.GetPausedPhase() != harnessv1.Phase_PHASE_REFLECTING || parked.GetReason().GetKind() != "question" || len(s.GetPendingToolCalls()) != 2 {
		t.Errorf("parked %v in %s", parked, s.GetPausedPhase())
	}
}

// TestAnswerIsReadBeforeTheEnd: a run whose user has answered gets one more turn where it
// would end; anything else that is missing comes first.
func TestAnswerIsReadBeforeTheEnd(t *testing.T) {
	for want, c := range map[string]situation{
		"repair":                          {done: true, called: true, retaken: true, contract: "answered"},
		"repair work_items_incomplete":    {done: true, called: true, retaken: true, contract: "answered", items: "open"},
		"repair agent_stop_hook_blocked":  {done: true, called: true, retaken: true, contract: "answered", hook: "block"},
		"DONE agent_done true":            {done: true, called: true, contract: "answered"},
		"repair contract_not_satisfied":   {done: true, called: true, retaken: true, contract: "unmet"},
		"PARKED question":                 {done: true, called: true, retaken: true, contract: "asks"},
		"DONE max_turns false":            {done: true, called: true, retaken: true, contract: "answered", maxTurns: true},
		"repair work_complete_not_called": {done: true, retaken: true, contract: "answered"},
		"CANCELLED cancelled false":       {done: true, called: true, retaken: true, failure: "cancelled"},
		"PARKED review":                   {done: true, called: true, retaken: true, contract: "answered", hook: "pause"},
		"FAILED failed false":             {done: true, called: true, retaken: true, contract: "answered", hook: "abort"},
	} {
		o := outcome(t, c, func(in *harnessv1.StepInput) { in.GetStep().GetTurnComplete().Answered = c.retaken })
		if got := verdict(o); got != want {
			t.Errorf("%+v: got %s, want %s", c, got, want)
		}
	}
}
