package anthropic

import (
	"encoding/json"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// event has the members that the provider reads of any event of a stream; the
// types of events share their names.
type event struct {
	Type    string  `json:"type"`
	Index   int     `json:"index"`
	Message message `json:"message"`
	Block   block   `json:"content_block"`
	Delta   delta   `json:"delta"`
	Usage   usage   `json:"usage"`
}

// message is a whole response, or the frame of a streamed one.
type message struct {
	Type    string          `json:"type"`
	Model   string          `json:"model"`
	Content []block         `json:"content"`
	Stop    string          `json:"stop_reason"`
	Usage   usage           `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// block is a part of a response: text, tool_use, or one that is not read.
type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// UnmarshalJSON reads only the type of a block of an unknown type: its other
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

// usage is the usage as the protocol counts it: InputTokens are those that
// neither came from the cache nor were written to it. A missing member is nil.
type usage struct {
	InputTokens   *int64 `json:"input_tokens"`
	OutputTokens  *int64 `json:"output_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
}

// merge takes the members of a later report, which are totals.
func (u *usage) merge(later usage) {
	for _, f := range []struct{ have, reported **int64 }{
		{&u.InputTokens, &later.InputTokens}, {&u.OutputTokens, &later.OutputTokens},
		{&u.CacheCreation, &later.CacheCreation}, {&u.CacheRead, &later.CacheRead},
	} {
		if *f.reported != nil {
			*f.have = *f.reported
		}
	}
}

// into sets the usage of r as the loop counts it: the input is everything that
// was sent, including what came from the cache.
func (u usage) into(r *model.Response) {
	written, cached := count(u.CacheCreation), count(u.CacheRead)
	r.Usage = &harnessv1.Usage{
		InputTokens: count(u.InputTokens) + written + cached, OutputTokens: count(u.OutputTokens), CachedInputTokens: cached,
		CacheWriteTokens: written,
	}
}

func count(n *int64) uint64 {
	if n == nil {
		return 0
	}
	return adapter.Count(*n)
}

// stream builds a response from events. The zero value is ready.
type stream struct {
	text  strings.Builder
	calls []*call
	usage usage
	model string
	stop  string
	ended bool
}

// call is a tool call as far as it has arrived. The index of the block tells
// calls apart; a server that gives all of them the same one starts each with a
// block start.
type call struct {
	index     int
	id, name  string
	input     json.RawMessage // from the start of the block
	arguments strings.Builder
	written   bool // a delta was not empty
}

// Add implements adapter.Stream. Events and blocks of unknown types are ignored.
func (s *stream) Add(kind string, data []byte) (model.Delta, error) {
	if kind == "error" {
		return model.Delta{}, refusals.Reported(data)
	}
	var head struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return model.Delta{}, adapter.Cut("the stream has an event that is not JSON", err)
	}
	switch head.Type {
	case "message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop":
	case "error":
		return model.Delta{}, refusals.Reported(data)
	case "":
		if !wire.Absent(head.Error) {
			return model.Delta{}, refusals.Reported(data)
		}
		return model.Delta{}, nil
	default:
		return model.Delta{}, nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return model.Delta{}, adapter.Cut("the stream has a "+head.Type+" event of another form than the protocol's", err)
	}
	return model.Delta{Text: s.add(e)}, nil
}

func (s *stream) add(e event) (text string) {
	switch e.Type {
	case "message_start":
		s.model = e.Message.Model
		s.usage.merge(e.Message.Usage)
	case "content_block_start":
		switch e.Block.Type {
		case "text":
			text = e.Block.Text
		case "tool_use":
			s.calls = append(s.calls, &call{index: e.Index, id: e.Block.ID, name: e.Block.Name, input: e.Block.Input})
		}
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			text = e.Delta.Text
		case "input_json_delta":
			s.addArguments(e.Index, e.Delta.PartialJSON)
		}
	case "message_delta":
		if e.Delta.Stop != "" {
			s.stop = e.Delta.Stop
		}
		s.usage.merge(e.Usage)
	case "message_stop":
		s.ended = true
	}
	s.text.WriteString(text)
	return text
}

// addArguments appends to the arguments of the newest call of a block's index. A
// piece for another block belongs to a tool that the server runs, and is
// ignored.
func (s *stream) addArguments(index int, piece string) {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if c := s.calls[i]; c.index == index {
			c.arguments.WriteString(piece)
			c.written = c.written || piece != ""
			return
		}
	}
}

// Complete implements adapter.Stream. It requires a stop reason too: a proxy may
// have closed a broken stream in the server's name.
func (s *stream) Complete() bool { return s.ended && s.stop != "" }

// Ended implements adapter.Stream.
func (s *stream) Ended() bool { return s.Complete() }

// Response implements adapter.Stream.
func (s *stream) Response() *model.Response {
	r := &model.Response{Text: s.text.String(), Model: s.model}
	for _, c := range s.calls {
		arguments := c.arguments.String()
		if !c.written {
			arguments = wire.Text(c.input)
		}
		r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(c.id, c.name, arguments))
	}
	s.usage.into(r)
	r.FinishReason = finishReason(s.stop, r.ToolCalls)
	return r
}

// decode reads a response that is one JSON object.
func decode(body []byte) (*model.Response, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, adapter.Cut("the response is not JSON", err)
	}
	if m.Type == "error" || m.Type == "" && !wire.Absent(m.Error) {
		return nil, refusals.Reported(body)
	}
	if m.Content == nil && m.Stop == "" {
		return nil, adapter.Cut("the response has no message", nil)
	}
	r := &model.Response{Model: m.Model}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			r.Text += b.Text
		case "tool_use":
			r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(b.ID, b.Name, wire.Text(b.Input)))
		}
	}
	m.Usage.into(r)
	r.FinishReason = finishReason(m.Stop, r.ToolCalls)
	return r, nil
}

// finishReason translates the stop reason. pause_turn, in which a tool of the
// server would continue, is not requested and counts as an end.
func finishReason(stop string, calls []*harnessv1.ToolCall) string {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "refusal":
		return "content_filter"
	case "end_turn", "stop_sequence", "pause_turn":
		return "stop"
	case "tool_use":
		return "tool_calls"
	default:
		return adapter.FinishReason(calls)
	}
}
