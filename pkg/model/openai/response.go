package openai

import (
	"encoding/json"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// completion is a whole response, or a chunk of a streamed one. Members that the
// provider does not read are ignored.
type completion struct {
	Model   wire.String       `json:"model"`
	Choices wire.List[choice] `json:"choices"`
	Usage   *usage            `json:"usage"`
	Error   json.RawMessage   `json:"error"`
}

type choice struct {
	Index        wire.Int    `json:"index"`
	Message      reply       `json:"message"` // of a whole response
	Delta        reply       `json:"delta"`   // of a chunk
	FinishReason wire.String `json:"finish_reason"`
}

type reply struct {
	Content   wire.String          `json:"content"`
	ToolCalls wire.List[callDelta] `json:"tool_calls"`
}

// callDelta is a tool call or a part of one.
type callDelta struct {
	Index    *wire.Int   `json:"index"`
	ID       wire.String `json:"id"`
	Function struct {
		Name wire.String `json:"name"`
		// Arguments may also be an object, whose JSON is kept.
		Arguments wire.String `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	PromptTokens        wire.Int `json:"prompt_tokens"`
	CompletionTokens    wire.Int `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens wire.Int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) proto() *harnessv1.Usage {
	if u == nil {
		return &harnessv1.Usage{}
	}
	return &harnessv1.Usage{
		InputTokens: adapter.Count(int64(u.PromptTokens)), OutputTokens: adapter.Count(int64(u.CompletionTokens)),
		CachedInputTokens: adapter.Count(int64(u.PromptTokensDetails.CachedTokens)),
	}
}

// stream builds a response from chunks. The zero value is ready.
type stream struct {
	text   strings.Builder
	calls  []*call
	usage  *usage
	finish string
	model  string
	done   bool // the server sent [DONE]
}

// call is a tool call as far as it has arrived.
type call struct {
	index     wire.Int // -1: the server gave none
	id, name  string
	arguments strings.Builder
}

// Add implements adapter.Stream. An error object, or an event that is not a
// chunk, counts as a cut stream.
func (s *stream) Add(kind string, data []byte) (model.Delta, error) {
	var text string
	if string(data) == "[DONE]" {
		s.done = true
		return model.Delta{}, nil
	}
	if kind == "error" {
		return model.Delta{}, refusals.Reported(data)
	}
	var chunk completion
	if err := unmarshal(data, &chunk, "the stream has an event that is not a chunk"); err != nil {
		return model.Delta{}, err
	}
	if chunk.Model != "" {
		s.model = string(chunk.Model)
	}
	if chunk.Usage != nil {
		s.usage = chunk.Usage
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		text += string(choice.Delta.Content)
		for _, d := range choice.Delta.ToolCalls {
			s.addCall(d)
		}
		if choice.FinishReason != "" {
			s.finish = string(choice.FinishReason)
		}
	}
	s.text.WriteString(text)
	return model.Delta{Text: text}, nil
}

// unmarshal reads JSON that may be an error object instead.
func unmarshal(data []byte, c *completion, what string) error {
	if err := wire.Unmarshal(data, c); err != nil {
		return adapter.Cut(what, err)
	}
	if !wire.Absent(c.Error) {
		return refusals.Reported(data)
	}
	return nil
}

// addCall appends a delta to the call that it belongs to. With an index that is
// the newest call of that index. A server that sends no index starts a call with
// a new id, or, without ids, with a name; other deltas continue the last call.
// Some servers give each whole call of a response the index 0; there too a new id
// starts a call.
func (s *stream) addCall(d callDelta) {
	var c *call
	if d.Index != nil {
		for _, have := range s.calls {
			if have.index == *d.Index {
				c = have
			}
		}
		if c != nil && d.ID != "" && c.id != "" && string(d.ID) != c.id {
			c = nil
		}
	} else if n := len(s.calls); n > 0 {
		last := s.calls[n-1]
		newID := d.ID != "" && string(d.ID) != last.id
		newName := d.ID == "" && d.Function.Name != ""
		if !newID && !newName {
			c = last
		}
	}
	if c == nil {
		c = &call{index: -1}
		if d.Index != nil {
			c.index = *d.Index
		}
		s.calls = append(s.calls, c)
	}
	if c.id == "" {
		c.id = string(d.ID)
	}
	if c.name == "" {
		c.name = string(d.Function.Name)
	}
	c.arguments.WriteString(string(d.Function.Arguments))
}

// Complete implements adapter.Stream.
func (s *stream) Complete() bool { return s.finish != "" }

// Ended implements adapter.Stream.
func (s *stream) Ended() bool { return s.done }

// Response implements adapter.Stream.
func (s *stream) Response() *model.Response {
	r := &model.Response{Text: s.text.String(), Usage: s.usage.proto(), Model: s.model}
	for _, c := range s.calls {
		r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(c.id, c.name, c.arguments.String()))
	}
	r.FinishReason = finishReason(s.finish, r.ToolCalls)
	return r
}

// decode reads a response that is one JSON object.
func decode(body []byte) (*model.Response, error) {
	var c completion
	if err := unmarshal(body, &c, "the response is not JSON"); err != nil {
		return nil, err
	}
	if len(c.Choices) == 0 {
		return nil, adapter.Cut("the response has no choice", nil)
	}
	first := c.Choices[0]
	r := &model.Response{Text: string(first.Message.Content), Model: string(c.Model), Usage: c.Usage.proto()}
	for _, t := range first.Message.ToolCalls {
		r.ToolCalls = append(r.ToolCalls, adapter.ToolCall(string(t.ID), string(t.Function.Name), string(t.Function.Arguments)))
	}
	r.FinishReason = finishReason(string(first.FinishReason), r.ToolCalls)
	return r, nil
}

// finishReason returns the reason as the loop names it.
func finishReason(reason string, calls []*harnessv1.ToolCall) string {
	switch reason {
	case "stop", "tool_calls", "length", "content_filter":
		return reason
	case "max_tokens":
		return "length"
	default:
		return adapter.FinishReason(calls)
	}
}
