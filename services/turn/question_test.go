package turn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// asks is the response of a tool host whose server asks a person.
func asks(state string) *harnessv1.ExecuteToolResponse {
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_INPUT_REQUIRED, Result: "never shown", Question: &harnessv1.ServerQuestion{
			Server: "notes", Round: 7, State: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(state)}},
			Requests: []*harnessv1.ServerRequest{{Id: "sure", Message: content.Inline("Sure?"), Schema: content.Inline(`{"type":"object","properties":{"yes":{"type":"boolean"}}}`)}},
		},
	}
}

// questioned is a turn with a call that asks and one that does not.
func questioned(t *testing.T, response *harnessv1.ExecuteToolResponse) *worker {
	w := newWorker(t, snapshot(), call("a", "write_file", `{"path":"x"}`), call("b", "read_file", `{"path":"y"}`))
	w.responsesTo = map[string]*harnessv1.ExecuteToolResponse{"a": response}
	return w
}

// TestServerQuestionsPark: the call waits with the question and its state, has no result yet, and
// its turn is open. The rest of the turn runs.
func TestServerQuestionsPark(t *testing.T) {
	w := questioned(t, asks("s1"))
	o := w.mustEnd()
	s := o.GetStep().GetSnapshot()
	pending := runstate.AwaitedCalls(s)
	if len(pending) != 1 || !o.GetStep().GetTurnComplete().GetAwaiting() || s.GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL || !s.GetTurn().GetOpen() {
		t.Fatalf("%v waits, %v", pending, o.GetStep())
	}
	p := pending[0]
	if p.GetKind() != runstate.KindQuestion || p.GetQuestion().GetRound() != 1 || string(p.GetQuestion().GetState().GetInline()) != "s1" || !p.GetWrites() ||
		content.Text(p.GetArguments()) != `{"path":"x"}` || p.GetDeadline() == nil || !strings.Contains(p.GetWhy(), "The server notes asks: Sure?") {
		t.Errorf("it waits with %v", p)
	}
	if fmt.Sprint(w.effects) != "[model m run a run b]" && fmt.Sprint(w.effects) != "[model  run a run b]" {
		t.Errorf("effects %v", w.effects)
	}
	for _, m := range append(appendedBy(w.journal), o.GetAppended()...) {
		if m.GetToolCallId() == "a" {
			t.Errorf("the call has the result %v", m)
		}
	}
	asked := o.GetEvents()[0].GetToolQuestion()
	if asked.GetCallId() != "a" || asked.GetQuestion().GetState() != nil || len(asked.GetQuestion().GetRequests()) != 1 {
		t.Errorf("observers see %v", o.GetEvents())
	}
}

// continued is the turn that continues after an answer.
func continued(t *testing.T, response *harnessv1.ExecuteToolResponse) *worker {
	s := questioned(t, asks("s1")).mustEnd().GetStep().GetSnapshot()
	s.Status, s.Phase = harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.Phase_PHASE_EXECUTING
	c := s.GetPendingToolCalls()[0]
	c.Class = harnessv1.PendingClass_PENDING_CLASS_APPROVED
	c.Question.Responses = []*harnessv1.ServerResponse{{RequestId: "sure", Action: harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT}}
	w := newWorker(t, s)
	w.responsesTo = map[string]*harnessv1.ExecuteToolResponse{"a": response}
	return w
}

// TestAnsweredCallsContinue: the same call is sent under the id of its round, with the answers, and
// without being announced or counted again. It may ask again.
func TestAnsweredCallsContinue(t *testing.T) {
	for name, response := range map[string]*harnessv1.ExecuteToolResponse{"ends": nil, "asks again": asks("s2")} {
		w := continued(t, response)
		before := w.state.Snapshot.GetActivity().GetWrites()
		o := w.mustEnd()
		s := o.GetStep().GetSnapshot()
		var sent toolcall.Call
		for _, a := range w.actions {
			if send, ok := a.(turn.SendCall); ok {
				sent = send.Call
			}
		}
		if sent.HostID() != "round:1:a" || sent.ID != "a" || len(sent.Question.GetResponses()) != 1 {
			t.Errorf("%s: sent was %v", name, sent)
		}
		var results, calls int
		for _, rec := range w.journal {
			for _, e := range rec.GetEvents() {
				if e.GetToolCall() != nil {
					calls++
				}
				if e.GetToolResult().GetCallId() == "a" {
					results++
				}
			}
		}
		waiting := len(s.GetPendingToolCalls())
		if calls != 0 || results+waiting != 1 || s.GetActivity().GetWrites() != before {
			t.Errorf("%s: %d calls, %d results, %d waiting, %d writes after %d", name, calls, results, waiting, s.GetActivity().GetWrites(), before)
		}
		if response == nil && (waiting != 0 || s.GetTurn().GetOpen()) || response != nil && s.GetPendingToolCalls()[0].GetQuestion().GetRound() != 2 {
			t.Errorf("%s: %v", name, s)
		}
	}
}

// TestStoppedQuestions: a turn that is stopped does not wait; the call has one result.
func TestStoppedQuestions(t *testing.T) {
	w := questioned(t, asks("s1"))
	w.stops = func(a turn.Action) bool { // while b runs
		_, waits := a.(turn.AwaitCall)
		return waits && strings.Contains(fmt.Sprint(w.effects), "run b")
	}
	o := w.mustEnd()
	var results []string
	for _, m := range append(appendedBy(w.journal), o.GetAppended()...) {
		if m.GetToolCallId() == "a" {
			results = append(results, content.Text(m.GetContent()))
		}
	}
	if len(results) != 1 || !strings.Contains(results[0], "interrupted before the question") || len(o.GetStep().GetSnapshot().GetPendingToolCalls()) > 0 {
		t.Errorf("results %q, waiting %v", results, o.GetStep().GetSnapshot().GetPendingToolCalls())
	}
}

// TestAnsweredCallsAreKilledByTheirRound: an interrupt names the part of the call that runs.
func TestAnsweredCallsAreKilledByTheirRound(t *testing.T) {
	w := continued(t, nil)
	w.stops = func(a turn.Action) bool { _, ok := a.(turn.AwaitCall); return ok }
	o := w.mustEnd()
	if got := fmt.Sprint(w.effects); got != "[run a kill [round:1:a]]" {
		t.Errorf("effects %s", got)
	}
	if !o.GetStep().GetTurnComplete().GetInterrupted() || len(o.GetStep().GetSnapshot().GetPendingToolCalls()) > 0 {
		t.Errorf("it ended as %v", o.GetStep().GetTurnComplete())
	}
}

// TestQuestionsOfHostsAreChecked: what a tool host lets a run keep and show has bounds, whatever it
// lets its servers do.
func TestQuestionsOfHostsAreChecked(t *testing.T) {
	large := asks(strings.Repeat("x", 64<<10+1))
	none := asks("")
	none.Question = nil
	answered := asks("s1")
	answered.Question.Responses = []*harnessv1.ServerResponse{{RequestId: "sure"}}
	ended := &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "done", Question: asks("s").GetQuestion()}
	for name, c := range map[string]struct {
		response *harnessv1.ExecuteToolResponse
		waits    int
	}{"a large state": {large, 0}, "no question": {none, 0}, "its own answer": {answered, 1}, "an end with a question": {ended, 0}} {
		w := questioned(t, c.response)
		s := w.mustEnd().GetStep().GetSnapshot()
		if got := s.GetPendingToolCalls(); len(got) != c.waits || c.waits > 0 && len(got[0].GetQuestion().GetResponses()) > 0 {
			t.Errorf("%s: %v waits", name, got)
		}
	}
}
