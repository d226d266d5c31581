package turn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// withClients are the tools of the other tests with one that a client runs.
func withClients(t *testing.T, s *harnessv1.Snapshot) *offer.Offer {
	t.Helper()
	made, err := agent.FromStep(&harnessv1.Step{Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	spec := func(name string, origin harnessv1.ToolOrigin) *harnessv1.ToolSpec {
		return &harnessv1.ToolSpec{Name: name, ParametersSchema: `{"type":"object"}`, Origin: origin}
	}
	o, err := offer.New(s, []*harnessv1.ToolSpec{spec("read_file", harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST)},
		&harnessv1.ClientTools{Tools: []*harnessv1.ToolSpec{spec("get_weather", harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT)}}, nil, made)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func rule(name string, policy harnessv1.ToolDecision) *harnessv1.ToolRule {
	return &harnessv1.ToolRule{Name: name, Policy: policy}
}

// counting gives a run a contract that counts findings and documents.
func counting(s *harnessv1.Snapshot) {
	s.TaskContract = contract.Resolve(&harnessv1.TaskContract{})
	for _, kind := range []string{"finding", "document"} {
		s.TaskContract.RequiredOutputs = append(s.TaskContract.RequiredOutputs, &harnessv1.RequiredOutput{
			Id: kind, Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT, Kind: kind},
		})
	}
}

// TestSavedArtifactsOfAContract: without quality they are in the journal, in the ledger after the
// turn and deliverables; narration is refused as in work items.
func TestSavedArtifactsOfAContract(t *testing.T) {
	s := snapshot()
	counting(s)
	w := newWorker(t, s,
		call("a", "save_artifact", `{"kind":"finding","title":"Prices","content":"Prices rose by 4 %.","citations":[{"source":"s1","quote":"by 4 %"}]}`),
		call("b", "save_artifact", `{"kind":"finding","title":"Prices","content":"I have completed the task. I read all of the files and wrote the report."}`))
	w.state.Offer = withClients(t, s)
	o := w.mustEnd()
	got := o.GetStep().GetSnapshot()
	if a := got.GetWorkItemLedger().GetArtifacts(); len(a) != 1 || a[0].GetId() != "a1" || a[0].GetKind() != "finding" || len(a[0].GetCitations()) != 1 || got.GetQuality() != nil {
		t.Errorf("the ledger is %v", got.GetWorkItemLedger())
	}
	if d := runstate.Result(got, noon).GetDeliverables(); len(d) != 1 || d[0].GetItemId() != "a1" || d[0].GetKind() != "finding" || content.Text(d[0].GetContent()) != "Prices rose by 4 %." {
		t.Errorf("deliverables %v", d)
	}
	refused := ""
	for _, m := range append(appendedBy(w.journal), o.GetAppended()...) {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL && m.GetToolCallId() == "b" {
			refused = content.Text(m.GetContent())
		}
	}
	if !strings.Contains(refused, "Not stored") {
		t.Errorf("the narration: %q", refused)
	}
}

// TestCallsThatWait checks what each call waits for, until when, and what the events
// report.
func TestCallsThatWait(t *testing.T) {
	s := snapshot()
	s.ToolRules = []*harnessv1.ToolRule{rule("read_file", harnessv1.ToolDecision_TOOL_DECISION_ASK)}
	w := newWorker(t, s,
		call("c", "get_weather", `{}`), call("q", "ask_user", `{"question":"Which?"}`), call("a", "read_file", `{}`), call("bad", "ask_user", `{}`))
	w.state.Offer = withClients(t, s)
	o := w.mustEnd()
	var awaits []string
	for _, e := range w.journal[1].GetEvents() {
		if c := e.GetToolCall(); c != nil {
			awaits = append(awaits, c.GetCallId()+":"+c.GetAwaits())
		}
	}
	if got := strings.Join(awaits, " "); got != "c:client_tool q:question a:approval bad:" {
		t.Errorf("announced are %s", got)
	}
	if !o.GetStep().GetTurnComplete().GetAwaiting() || o.GetStep().GetSnapshot().GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL {
		t.Errorf("completed as %v", o.GetStep())
	}
	var pending []string
	for _, c := range runstate.AwaitedCalls(o.GetStep().GetSnapshot()) {
		pending = append(pending, fmt.Sprint(c.GetCallId(), " ", c.GetKind(), " ", c.GetWhy(), " ", c.GetDeadline().AsTime().Sub(noon)))
	}
	if got := strings.Join(pending, ", "); got != "c client_tool  168h0m0s, q question Which? 168h0m0s, a approval the rule for \"read_file\" decides 168h0m0s" {
		t.Errorf("pending are %s", got)
	}
}
