package repair_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// questioned is a run whose turn 3 waits for the answer to the second question of a call.
func questioned() *harnessv1.Snapshot {
	s := waiting()
	call := pending("s", "mcp__notes__ask", runstate.KindQuestion, time.Hour)
	call.Origin, call.Arguments = harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, content.Inline(`{"a":1}`)
	call.Question = &harnessv1.ServerQuestion{
		Server: "notes", Round: 2, State: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte("state")}},
		Requests: []*harnessv1.ServerRequest{{
			Id: "sure", Message: content.Inline("Sure?"), Schema: content.Inline(`{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}`),
		}},
	}
	s.PendingToolCalls = []*harnessv1.PendingCall{call}
	s.StopReason, s.WakeAt = runstate.AwaitReason(s, 3), call.GetDeadline()
	runstate.RecordAnswer(s, "s", "earlier")
	runstate.RecordAnswer(s, runstate.RoundID("s", 1), "earlier")
	return s
}

func answerTo(change func(*harnessv1.ToolAnswer)) *harnessv1.InboxItem {
	item := result("s", "yes")
	change(item.GetToolAnswer())
	return item
}

// TestAnswersToServers: an answer that fits lets the call continue with the rest of its turn, once. One
// that does not fit, or is for another question, has no effect.
func TestAnswersToServers(t *testing.T) {
	type items = []*harnessv1.InboxItem
	round := func(n uint32) *harnessv1.InboxItem { return answerTo(func(a *harnessv1.ToolAnswer) { a.Round = n }) }
	for name, c := range map[string]struct {
		items        items
		want, events string
		action       harnessv1.AnswerAction
		values       string
	}{
		"a value":     {items{result("s", "yes")}, "compaction", "tool.answer input.accepted", harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT, `{"yes":true}`},
		"its round":   {items{round(2)}, "compaction", "tool.answer input.accepted", harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT, `{"yes":true}`},
		"declined":    {items{failure("s", "no")}, "compaction", "tool.answer input.accepted", harnessv1.AnswerAction_ANSWER_ACTION_DECLINE, ""},
		"two answers": {items{result("s", "yes"), result("s", "no")}, "compaction", "tool.answer input.accepted input.rejected", harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT, `{"yes":true}`},
		"closed": {items{answerTo(func(a *harnessv1.ToolAnswer) { a.Action = harnessv1.AnswerAction_ANSWER_ACTION_CANCEL })}, "compaction",
			"tool.answer input.accepted", harnessv1.AnswerAction_ANSWER_ACTION_CANCEL, ""},
		"a round before":        {items{round(1)}, "park question", "input.rejected", 0, ""},
		"a value that does not": {items{result("s", "maybe")}, "park question", "input.rejected", 0, ""},
		"an approval":           {items{approve("s", once)}, "park question", "input.rejected", 0, ""},
		"an interrupt":          {items{interrupt()}, "park interrupted", "input.accepted repair run.interrupted session.pause", 0, ""},
		"interrupted after it":  {items{result("s", "yes"), interrupt()}, "park interrupted", "tool.answer input.accepted input.accepted repair run.interrupted session.pause", 0, ""},
	} {
		o := drain(t, questioned(), c.items...)
		s := o.GetStep().GetSnapshot()
		if verdict(o) != c.want || events(o) != c.events {
			t.Errorf("%s: goes to %s: %s", name, verdict(o), events(o))
		}
		approved := runstate.ApprovedCalls(s)
		if c.action == 0 {
			if len(approved) > 0 {
				t.Errorf("%s: %v continues", name, approved)
			}
			continue
		}
		q := approved[0].GetQuestion()
		if len(approved) != 1 || len(q.GetResponses()) != 1 || string(q.GetState().GetInline()) != "state" || content.Text(approved[0].GetArguments()) != `{"a":1}` {
			t.Fatalf("%s: %v continues", name, approved)
		}
		if r := q.GetResponses()[0]; r.GetRequestId() != "sure" || r.GetAction() != c.action || r.GetContent().GetInline() != c.values {
			t.Errorf("%s: the response is %v", name, r)
		}
		if len(o.GetAppended()) > 0 {
			t.Errorf("%s: the model is given %v", name, o.GetAppended())
		}
		if !runstate.Answered(s, "s") || !runstate.Answered(s, "round:2:s") {
			t.Errorf("%s: the answer is not remembered", name)
		}
	}
}

// TestServersWaitUntilTheirDeadline: then the call has an error, and the run continues.
func TestServersWaitUntilTheirDeadline(t *testing.T) {
	s := questioned()
	s.PendingToolCalls[0].Deadline = timestamppb.New(noon.Add(-time.Second))
	s.WakeAt = s.GetPendingToolCalls()[0].GetDeadline()
	o := drain(t, s, timer(s.GetParkVersion()))
	if len(o.GetAppended()) != 1 || !o.GetAppended()[0].GetIsError() || !strings.Contains(content.Text(o.GetAppended()[0].GetContent()), "question of this call's server in time") {
		t.Errorf("the model is given %v", o.GetAppended())
	}
	if !strings.Contains(events(o), "repair") || len(o.GetStep().GetSnapshot().GetPendingToolCalls()) > 0 {
		t.Errorf("%s: %s", verdict(o), events(o))
	}
}

// TestAnswersInOtherModes: a call that the mode of work does not allow any more does not continue.
func TestAnswersInOtherModes(t *testing.T) {
	s := questioned()
	s.Mode, s.PendingToolCalls[0].Writes = "plan", true
	o := drain(t, s, result("s", "yes"))
	if !strings.Contains(events(o), "tool.denied") || len(runstate.ApprovedCalls(o.GetStep().GetSnapshot())) > 0 {
		t.Errorf("%s: %s", verdict(o), events(o))
	}
	if proto.Equal(s, o.GetStep().GetSnapshot()) {
		t.Error("nothing has changed")
	}
}
