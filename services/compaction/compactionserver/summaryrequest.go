package compactionserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/summary"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// Bounds of the messages in a request for a summary.
const (
	requestShare = 0.70  // of the window of the summarizer
	mostParts    = 3     // by which a request is shorter after failed attempts
	leastRequest = 2_000 // bytes, however small the window is
	leastShown   = 300   // bytes of a text that is shortened
	heading      = 60    // bytes of the line above a message
)

// bytesPerToken bounds the bytes of a token in the texts of a request.
const bytesPerToken = 3

// summaryRequest returns the request for the summary of a job's span, as long as the
// summarizer can read. After a failed attempt it is shorter: the window may be smaller than
// it is said to be.
func (o *observer) summaryRequest(
	ctx context.Context, c *conversation.Conversation, job *harnessv1.SummaryJob, former *harnessv1.StructuredSummary,
) (*harnessv1.ModelRequest, error) {
	span := c.Messages[job.GetFirstMessage()-1 : min(job.GetThroughMessage(), uint64(len(c.Messages)))]
	sent, err := o.s.texts.Messages(ctx, o.task.Run, o.snap.GetModel(), runstate.ShownTokens(o.snap.GetConfig()), false, span)
	if err != nil {
		return nil, err
	}
	messages := make([]*harnessv1.Message, len(sent))
	for i, m := range sent {
		messages[i] = proto.CloneOf(m)
		messages[i].Parts = nil
	}
	window := cmp.Or(o.s.cfg.Window(compaction.Summarizer(o.snap)), o.snap.GetConfig().GetContext().GetMaxInputTokens())
	room := int(requestShare*float64(window)*bytesPerToken) - summary.Overhead(former)
	messages = fit(messages, max(room/int(min(max(job.GetAttempt(), 1), mostParts)), leastRequest))
	request := summary.Request(cmp.Or(content.Text(o.snap.GetGoal()), o.snap.GetGoalPreview()), former, messages)
	request.Model = compaction.Summarizer(o.snap)
	return request, nil
}

// fit shortens messages to limit bytes together: first the longest texts, then it leaves out
// messages of the middle.
func fit(messages []*harnessv1.Message, limit int) []*harnessv1.Message {
	bytes := 0
	sizes := make([]int, len(messages))
	measure := func(shorten func(m *harnessv1.Message) int) {
		bytes = 0
		for i, m := range messages {
			sizes[i] = shorten(m) + heading
			bytes += sizes[i]
		}
	}
	measure(func(m *harnessv1.Message) int { return cut(m, limit) })
	for most := limit / 2; bytes > limit && most >= leastShown; most /= 2 {
		measure(func(m *harnessv1.Message) int { return cut(m, most) })
	}
	if bytes <= limit || len(messages) == 0 {
		return messages
	}
	from := len(messages) / 2
	through := from // the messages from…through are left out
	bytes -= sizes[from]
	for bytes > limit && (from > 0 || through < len(messages)-1) {
		if len(messages)-1-through > from {
			through++
			bytes -= sizes[through]
		} else {
			from--
			bytes -= sizes[from]
		}
	}
	note := &harnessv1.Message{Id: messages[from].GetId(), Role: harnessv1.Role_ROLE_USER, Content: content.Inline(
		fmt.Sprintf("[Messages %d to %d are left out: they do not fit.]", messages[from].GetId(), messages[through].GetId()))}
	return slices.Concat(messages[:from], []*harnessv1.Message{note}, messages[through+1:])
}

// cut shortens the texts of a message to a number of bytes each, and returns their bytes.
func cut(m *harnessv1.Message, limit int) int {
	shorten := func(c *harnessv1.Content) int {
		if text := c.GetInline(); len(text) > limit {
			half := limit / 2
			c.Value = &harnessv1.Content_Inline{Inline: content.Cut(text, half) + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-half:], "")}
		}
		return len(c.GetInline())
	}
	bytes := shorten(m.GetContent())
	for _, call := range m.GetToolCalls() {
		bytes += shorten(call.GetArguments())
	}
	return bytes
}
