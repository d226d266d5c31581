package turn

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/judge"
)

// startJudgement starts to judge the calls of the response, once their arguments are
// known.
func (p *Progress) startJudgement(s *State) {
	if !p.unjudged() || p.execution.judgement != nil || !p.execution.modeRead {
		return
	}
	var queue []*harnessv1.ToolCall
	for _, call := range p.Message.GetToolCalls() {
		text, known := p.text(call.GetId(), call.GetArguments())
		if !known {
			return
		}
		call = proto.CloneOf(call)
		call.Arguments = content.Inline(text)
		queue = append(queue, call)
	}
	p.execution.judgement = judge.Start(p.callTurn(s), p.entry(s, nil), queue)
}

// callTurn returns the data by which the calls of the turn are judged.
func (p *Progress) callTurn(s *State) judge.Turn {
	return judge.Turn{
		Number: p.Number, Snapshot: s.Snapshot, Definition: s.Definition, Sandbox: s.Sandbox, Offer: s.Offer, Changed: p.execution.offer,
	}
}

// decideCalls calls the subscribers of the calls and reads the messages that the calls ask
// for, in order, and stores what becomes of the calls.
func (p *Progress) decideCalls(*State) Action {
	j := p.execution.judgement
	switch {
	case !p.execution.modeRead:
		return CheckInbox{Newest: true}
	case j == nil:
		unread := map[string]*harnessv1.Content{}
		for _, call := range p.Message.GetToolCalls() {
			if call.GetArguments().GetBlob() != nil {
				unread[call.GetId()] = call.GetArguments()
			}
		}
		return ReadArguments{Arguments: unread}
	case j.Reads() != nil:
		return p.readMessages(*j.Reads())
	case j.Fires() != nil:
		return FireHooks{Point: *j.Fires()}
	}
	return Append{Draft: j.Draft(), Before: "weighed", After: "judged"}
}

// readMessages reads messages that precede the response.
func (p *Progress) readMessages(request readback.Request) Action {
	if p.execution.conversation == nil {
		return LoadConversation{}
	}
	messages := p.execution.conversation.Messages
	if id := p.Message.GetId(); id > 0 {
		messages = messages[:min(id-1, uint64(len(messages)))]
	}
	return ReadMessages{Request: request, Messages: messages}
}
