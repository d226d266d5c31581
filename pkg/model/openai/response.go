package openai

import (
	"encoding/json"

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
	// Of an error object that has status 200: its message instead of choices.
	Object  wire.String `json:"object"`
	Message wire.String `json:"message"`
}

type choice struct {
	Message      reply       `json:"message"` // of a whole response
	Delta        reply       `json:"delta"`   // of a chunk
	FinishReason wire.String `json:"finish_reason"`
	// Usage is here at Moonshot.
	Usage *usage `json:"usage"`
	// Error is here at OpenRouter, with the finish reason error.
	Error json.RawMessage `json:"error"`
	// Filters are Azure's categories of a filtered response.
	Filters json.RawMessage `json:"content_filter_results"`
}

// reply is an answer or a piece of one. Members that are often of another type than
// documented are decoded later.
type reply struct {
	Content          json.RawMessage      `json:"content"`
	Refusal          json.RawMessage      `json:"refusal"`
	ReasoningContent json.RawMessage      `json:"reasoning_content"`
	Reasoning        json.RawMessage      `json:"reasoning"`
	ReasoningDetails json.RawMessage      `json:"reasoning_details"`
	ExtraContent     json.RawMessage      `json:"extra_content"`
	ToolCalls        wire.List[callDelta] `json:"tool_calls"`
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
	ExtraContent json.RawMessage `json:"extra_content"`
}

// decoder reads the responses of one server.
type decoder struct {
	reasoning *Reasoning
	refusals  *adapter.Refusals
}

// stream builds a response from chunks.
type stream struct {
	decoder

	answer answer
	usage  *usage
	ending conclusion
	model  string
	done   bool // the server sent [DONE]
	size   int
}

func (d decoder) stream() *stream {
	return &stream{decoder: d, answer: answer{reasoning: d.reasoning}}
}

// Add implements adapter.Stream. An error object, or an event that is not a
// chunk, counts as a cut stream.
func (s *stream) Add(kind string, data []byte) (model.Delta, error) {
	if string(data) == "[DONE]" {
		s.done = true
		return model.Delta{}, nil
	}
	if kind == "error" {
		return model.Delta{}, s.refusals.Reported(data)
	}
	var chunk completion
	if err := s.unmarshal(data, &chunk, "the stream has an event that is not a chunk"); err != nil {
		return model.Delta{}, err
	}
	if chunk.Model != "" {
		s.model = string(chunk.Model)
	}
	s.usage = greater(s.usage, chunk.Usage)
	var delta model.Delta
	for _, choice := range chunk.Choices[:min(len(chunk.Choices), 1)] { // a request has one, with any index
		if err := s.end(&choice); err != nil {
			return model.Delta{}, err
		}
		s.size += choice.Delta.size()
		piece := s.answer.add(&choice.Delta)
		delta.Text += piece.Text
		delta.Reasoning += piece.Reasoning
		before := s.answer.calls.Len()
		for _, d := range choice.Delta.ToolCalls {
			s.answer.addCall(d, false)
		}
		s.size += (s.answer.calls.Len() - before) * adapter.PieceBytes
	}
	return delta, nil
}

// size returns the bytes that a reply adds to the answer.
func (r *reply) size() int {
	n := 0
	for _, member := range []json.RawMessage{r.Content, r.Refusal, r.ReasoningContent, r.Reasoning, r.ReasoningDetails, r.ExtraContent} {
		if !wire.Absent(member) {
			n += max(len(member)-len(`""`), 0)
		}
	}
	for _, c := range r.ToolCalls {
		n += len(c.Function.Arguments) + len(c.ExtraContent)
	}
	return n
}

// end reads how a choice has ended.
func (s *stream) end(c *choice) error {
	if !wire.Absent(c.Error) {
		return s.refusals.Reported([]byte(`{"error":` + string(c.Error) + `}`))
	}
	s.usage = greater(s.usage, c.Usage)
	if c.FinishReason == "" {
		return nil
	}
	ending, err := readEnding(string(c.FinishReason), c.Filters)
	s.ending = ending
	return err
}

// unmarshal reads JSON that may be an error object instead.
func (d decoder) unmarshal(data []byte, c *completion, what string) error {
	if err := wire.Unmarshal(data, c); err != nil {
		return adapter.Cut(what, err)
	}
	if !wire.Absent(c.Error) || len(c.Choices) == 0 && (c.Message != "" || c.Object == "error") {
		return d.refusals.Reported(data)
	}
	return nil
}

// Size implements adapter.Stream.
func (s *stream) Size() int { return s.size }

// Complete implements adapter.Stream. Some servers never send a finish reason: [DONE] after
// whole calls, or after a text without calls, is an end too.
func (s *stream) Complete() bool {
	return s.ending.reason != "" || s.done && s.answer.whole()
}

// Ended implements adapter.Stream.
func (s *stream) Ended() bool { return s.done }

// Response implements adapter.Stream.
func (s *stream) Response() *model.Response { return s.answer.response(s.ending, s.usage, s.model) }

// decode reads a response that is one JSON object.
func (d decoder) decode(body []byte) (*model.Response, error) {
	var c completion
	if err := d.unmarshal(body, &c, "the response is not JSON"); err != nil {
		return nil, err
	}
	if len(c.Choices) == 0 {
		return nil, adapter.Cut("the response has no choice", nil)
	}
	s := d.stream()
	s.usage = c.Usage
	first := &c.Choices[0]
	if err := s.end(first); err != nil {
		return nil, err
	}
	s.answer.add(&first.Message)
	for _, call := range first.Message.ToolCalls {
		s.answer.addCall(call, true)
	}
	return s.answer.response(s.ending, s.usage, string(c.Model)), nil
}
