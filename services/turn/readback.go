package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// readCall is a call that reads messages of the run.
type readCall struct {
	call    *harnessv1.ToolCall // with the arguments that it is carried out with
	request readback.Request
}

// readsMessages reports whether a call is carried out by reading messages of the run.
func readsMessages(c *harnessv1.PreparedCall) bool {
	t := harnesstool.Find(c.GetTool())
	return c.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS && t != nil && t.Messages != nil
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

// read answers the call that has read messages, and judges the calls after it.
func (j *judgement) read(result readback.Result) {
	call := j.reading.call
	j.reading = nil
	j.draft.Emit(event.ToolEnded(call.GetId(), call.GetName(), result.Failed, nil))
	j.reply = j.respond(call, result.Text, result.Failed)
	j.reply.hooked, j.reply.ran = true, true
	j.reply.message.Parts = media.Parts(result.Media)
	j.advance()
}
