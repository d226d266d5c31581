package anthropic

import (
	"encoding/json"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/attempt"
)

// event is what the adapter reads of any event of a stream; the kinds share their
// members' names. The SDK's union of them copies each event dozens of times, and
// does not keep the bytes of an input.
type event struct {
	Index   int         `json:"index"`
	Message message     `json:"message"`
	Block   block       `json:"content_block"`
	Delta   delta       `json:"delta"`
	Usage   consumption `json:"usage"`
}

// message is a whole answer, or the frame of a streamed one.
type message struct {
	Type    string          `json:"type"`
	Model   string          `json:"model"`
	Content []block         `json:"content"`
	Stop    string          `json:"stop_reason"`
	Usage   consumption     `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// block is a part of an answer: text, tool_use, or one that is not read.
type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// UnmarshalJSON reads of a block of a kind that is not known its kind alone: its
// members may have any form.
func (b *block) UnmarshalJSON(data []byte) error {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return err
	}
	if kind.Type != "text" && kind.Type != "tool_use" {
		*b = block{Type: kind.Type}
		return nil
	}
	type plain block
	return json.Unmarshal(data, (*plain)(b))
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	PartialJSON string `json:"partial_json"`
	Stop        string `json:"stop_reason"`
}

// consumption is the usage as the protocol counts it: InputTokens are those that
// neither came from the cache nor went into it. A member that is not there is nil.
type consumption struct {
	InputTokens   *int64 `json:"input_tokens"`
	OutputTokens  *int64 `json:"output_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
}

// merge takes over what a later report says; its figures are totals.
func (c *consumption) merge(later consumption) {
	for _, f := range []struct{ have, said **int64 }{
		{&c.InputTokens, &later.InputTokens}, {&c.OutputTokens, &later.OutputTokens},
		{&c.CacheCreation, &later.CacheCreation}, {&c.CacheRead, &later.CacheRead},
	} {
		if *f.said != nil {
			*f.have = *f.said
		}
	}
}

// into writes the usage as the loop counts it: input is everything that was sent,
// of which a part came from the cache.
func (c consumption) into(r *model.Response) {
	written, cached := count(c.CacheCreation), count(c.CacheRead)
	r.Usage = &harnessv1.Usage{
		InputTokens: count(c.InputTokens) + written + cached, OutputTokens: count(c.OutputTokens), CachedInputTokens: cached,
	}
	r.CacheWriteTokens = written
}

// maxCount is beyond what any request holds, in tokens; larger figures are garbage,
// whose sum must not overflow.
const maxCount = 1 << 40

func count(n *int64) uint64 {
	if n == nil {
		return 0
	}
	return uint64(min(max(*n, 0), maxCount)) //nolint:gosec // not negative
}

// accumulator builds a response from the events of a stream. It is a fold: it
// holds no clock and reads nothing. The zero value is ready.
type accumulator struct {
	text  strings.Builder
	calls []*call
	usage consumption
	model string
	stop  string
	ended bool
}

// call is a tool call as far as it has come. Blocks are told apart by their index;
// a server that gives all of them the same one begins a block with its start.
type call struct {
	index     int
	id, name  string
	input     json.RawMessage // as it stood in the start of the block
	arguments strings.Builder
	written   bool // a delta had something in it
}

// add takes the data of one event and returns the text that it adds. Events and
// blocks of kinds that are not known are passed over.
func (a *accumulator) add(data []byte) (text string, err error) {
	var e event
	var head struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return "", attempt.Cut("the stream holds what is not an event", err)
	}
	switch head.Type {
	case "error":
		return "", reportedError(data)
	case "":
		if !absent(head.Error) {
			return "", reportedError(data)
		}
		return "", nil
	case "message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop":
		if err := json.Unmarshal(data, &e); err != nil {
			return "", attempt.Cut("the stream holds an event of another form than the protocol's", err)
		}
	}
	switch head.Type {
	case "message_start":
		a.model = e.Message.Model
		a.usage.merge(e.Message.Usage)
	case "content_block_start":
		switch e.Block.Type {
		case "text":
			text = e.Block.Text
		case "tool_use":
			a.calls = append(a.calls, &call{index: e.Index, id: e.Block.ID, name: e.Block.Name, input: e.Block.Input})
		}
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			text = e.Delta.Text
		case "input_json_delta":
			a.argue(e.Index, e.Delta.PartialJSON)
		}
	case "message_delta":
		if e.Delta.Stop != "" {
			a.stop = e.Delta.Stop
		}
		a.usage.merge(e.Usage)
	case "message_stop":
		a.ended = true
	}
	a.text.WriteString(text)
	return text, nil
}

// argue adds to the arguments of the newest call of a block's index; a piece for
// a block that is no call belongs to a tool that the server runs, and is let go.
func (a *accumulator) argue(index int, piece string) {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if c := a.calls[i]; c.index == index {
			c.arguments.WriteString(piece)
			c.written = c.written || piece != ""
			return
		}
	}
}

// finished says that the server declared the message complete and said why it stopped:
// what stands between may have closed a broken stream for it.
func (a *accumulator) finished() bool { return a.ended && a.stop != "" }

func (a *accumulator) response() *model.Response {
	r := &model.Response{Text: a.text.String(), Model: a.model}
	for _, c := range a.calls {
		arguments := c.arguments.String()
		if !c.written {
			arguments = input(c.input)
		}
		r.ToolCalls = append(r.ToolCalls, toolCall(c.id, c.name, arguments))
	}
	a.usage.into(r)
	return complete(r, a.stop)
}

// input is the arguments of a call that came in one piece. Some servers send
// the text of an object in place of the object.
func input(raw json.RawMessage) string {
	var s string
	switch {
	case absent(raw):
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}

// readMessage reads an answer that is one JSON object.
func readMessage(body []byte) (*model.Response, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, attempt.Cut("the answer is not JSON", err)
	}
	if m.Type == "error" || m.Type == "" && !absent(m.Error) {
		return nil, reportedError(body)
	}
	if m.Content == nil && m.Stop == "" {
		return nil, attempt.Cut("the answer holds no message", nil)
	}
	r := &model.Response{Model: m.Model}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			r.Text += b.Text
		case "tool_use":
			r.ToolCalls = append(r.ToolCalls, toolCall(b.ID, b.Name, input(b.Input)))
		}
	}
	m.Usage.into(r)
	return complete(r, m.Stop), nil
}

func toolCall(id, name, arguments string) *harnessv1.ToolCall {
	return &harnessv1.ToolCall{Id: id, Name: name,
		Arguments: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: arguments}}}
}

// complete translates the reason for which the model stopped. One that is not
// known, or none, is taken from what the response holds; pause_turn, in which a
// tool of the server's would go on, is not asked for and counts as an end.
func complete(r *model.Response, stop string) *model.Response {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		r.FinishReason = "length"
	case "refusal":
		r.FinishReason = "content_filter"
	case "end_turn", "stop_sequence", "pause_turn":
		r.FinishReason = "stop"
	case "tool_use":
		r.FinishReason = "tool_calls"
	default:
		r.FinishReason = "stop"
		if len(r.ToolCalls) > 0 {
			r.FinishReason = "tool_calls"
		}
	}
	return r
}
