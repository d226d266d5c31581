package turn

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// notAnswered is the result of a call whose turn was stopped while its server asked a person.
const notAnswered = "The run was interrupted before the question of this call's server was answered. What the call had done until then stays."

// addQuestion keeps a call whose server asks a person, unless the turn was stopped. An interrupt
// leaves one that its tool host holds to repair, which has it cancelled.
func (c *completion) addQuestion(call toolcall.Call, end End) {
	q := proto.CloneOf(c.p.Questions[call.ID])
	if end.Error != nil || end.Interrupted && q.GetLedgerId() == "" {
		c.refuse(call.ID, call.Tool, call.Marks, notAnswered)
		c.release(runstate.RoundID(call.ID, q.GetRound()), q)
		return
	}
	pending := &harnessv1.PendingCall{
		CallId: call.ID, Tool: call.Tool, Arguments: proto.CloneOf(call.Arguments), Kind: runstate.KindQuestion,
		Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, TurnNumber: c.p.Number,
		Deadline: runstate.AnswerDeadline(c.s, runstate.KindQuestion, end.Now),
		Why:      content.Cut("The server "+q.GetServer()+" asks: "+content.OneLine(content.Text(q.GetRequests()[0].GetMessage())), toolcall.MaxQuestion),
		Origin:   harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Marks: mark.Pending(call.Marks), Changes: call.Changes, Question: q,
	}
	if last := end.Now.Add(q.GetValid().AsDuration()); q.GetLedgerId() != "" && last.Before(pending.GetDeadline().AsTime()) {
		pending.Deadline = timestamppb.New(last)
	}
	facts := func(of interface {
		GetCallId() string
		GetReads() bool
		GetWrites() bool
		GetExplores() bool
	}) {
		if of.GetCallId() == call.ID {
			pending.Reads, pending.Writes, pending.Explores = of.GetReads(), of.GetWrites(), of.GetExplores()
		}
	}
	for _, prepared := range c.p.Prepared {
		facts(prepared)
	}
	for _, approved := range c.p.approved {
		facts(approved)
	}
	c.s.PendingToolCalls = append(c.s.PendingToolCalls, pending)
	c.draft.Emit(event.ToolQuestion(pending))
}

// release has the call cancelled that a tool host holds for the answer to a question, by what ends the
// run after the turn. id is that of the part that follows the answer.
func (c *completion) release(id string, q *harnessv1.ServerQuestion) {
	if q.GetLedgerId() != "" {
		runstate.AddBackground(c.s, &harnessv1.BackgroundCommand{CallId: id, LedgerId: q.GetLedgerId()})
	}
}
