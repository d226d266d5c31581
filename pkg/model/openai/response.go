package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/attempt"
)

// accumulator builds a response from the chunks of a stream. It is a fold: it
// holds no clock and reads nothing. The zero value is ready.
type accumulator struct {
	text   strings.Builder
	calls  []*call
	usage  *harnessv1.Usage
	finish string
	model  string
}

// call is a tool call that is being written.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// add takes the data of one event and returns the text that it brought. An
// error object or what is not a chunk counts as a cut stream.
func (a *accumulator) add(data []byte) (text string, err error) {
	if err := errorObject(data); err != nil {
		return "", err
	}
	var chunk sdk.ChatCompletionChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return "", attempt.Cut("the stream holds what is not a chunk", err)
	}
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		a.usage = usage(chunk.Usage)
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		text += choice.Delta.Content
		for _, d := range choice.Delta.ToolCalls {
			a.addCall(d)
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	a.text.WriteString(text)
	return text, nil
}

// addCall finds the call that a delta belongs to. With an index it is the call
// of that index. Servers that leave the index out start a call with a new id,
// or, without ids, with a name; what has neither goes on with the last call.
// Some servers give every whole call of a response the index 0; a new id or
// name after arguments then starts a call too.
func (a *accumulator) addCall(d sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	var c *call
	if d.JSON.Index.Valid() {
		for _, have := range a.calls {
			if have.index == d.Index {
				c = have // the last of that index
			}
		}
		if c != nil && d.ID != "" && c.id != "" && d.ID != c.id {
			c = nil
		}
	} else if n := len(a.calls); n > 0 {
		last := a.calls[n-1]
		newID := d.ID != "" && d.ID != last.id
		newName := d.ID == "" && d.Function.Name != ""
		if !newID && !newName {
			c = last
		}
	}
	if c == nil {
		c = &call{index: d.Index}
		if !d.JSON.Index.Valid() {
			c.index = -1
		}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = d.ID
	}
	if c.name == "" {
		c.name = d.Function.Name
	}
	c.arguments.WriteString(verbatim(d.Function.JSON.Arguments))
}

// verbatim is the text of a member that should be a string; a server that
// sends an object instead of its text gets the text as it stood.
func verbatim(f respjson.Field) string {
	if f.Raw() == "" || f.Raw() == respjson.Null {
		return ""
	}
	var s string
	if json.Unmarshal([]byte(f.Raw()), &s) == nil {
		return s
	}
	return f.Raw()
}

// finished says that the server declared the response complete.
func (a *accumulator) finished() bool { return a.finish != "" }

func (a *accumulator) response() *model.Response {
	r := &model.Response{Text: a.text.String(), Usage: a.usage, Model: a.model}
	for _, c := range a.calls {
		r.ToolCalls = append(r.ToolCalls, toolCall(c.id, c.name, c.arguments.String()))
	}
	return complete(r, a.finish)
}

// readCompletion reads an answer that is one JSON object.
func readCompletion(body []byte) (*model.Response, error) {
	if err := errorObject(body); err != nil {
		return nil, err
	}
	var c sdk.ChatCompletion
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, attempt.Cut("the answer is not JSON", err)
	}
	if len(c.Choices) == 0 {
		return nil, attempt.Cut("the answer holds no choice", nil)
	}
	m := c.Choices[0].Message
	r := &model.Response{Text: m.Content, Model: c.Model}
	for _, t := range m.ToolCalls {
		r.ToolCalls = append(r.ToolCalls, toolCall(t.ID, t.Function.Name, callArguments(t)))
	}
	if c.JSON.Usage.Valid() {
		r.Usage = usage(c.Usage)
	}
	return complete(r, c.Choices[0].FinishReason), nil
}

// callArguments reads the arguments from the bytes, because the SDK's type
// knows them as a string only.
func callArguments(t sdk.ChatCompletionMessageToolCallUnion) string {
	var raw struct {
		Function struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if json.Unmarshal([]byte(t.RawJSON()), &raw) != nil || len(raw.Function.Arguments) == 0 || string(raw.Function.Arguments) == "null" {
		return t.Function.Arguments
	}
	var s string
	if json.Unmarshal(raw.Function.Arguments, &s) == nil {
		return s
	}
	return string(raw.Function.Arguments)
}

func toolCall(id, name, arguments string) *harnessv1.ToolCall {
	return &harnessv1.ToolCall{Id: id, Name: name,
		Arguments: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: arguments}}}
}

func usage(u sdk.CompletionUsage) *harnessv1.Usage {
	return &harnessv1.Usage{
		InputTokens: count(u.PromptTokens), OutputTokens: count(u.CompletionTokens),
		CachedInputTokens: count(u.PromptTokensDetails.CachedTokens),
	}
}

func count(n int64) uint64 { return uint64(max(n, 0)) }

// complete fills in what every response has. A finish reason that the protocol
// does not know, or none on a whole answer, is taken from what the response
// holds.
func complete(r *model.Response, finish string) *model.Response {
	if r.Usage == nil {
		r.Usage = &harnessv1.Usage{}
	}
	switch finish {
	case "stop", "tool_calls", "length", "content_filter":
		r.FinishReason = finish
	case "max_tokens":
		r.FinishReason = "length"
	default:
		r.FinishReason = "stop"
		if len(r.ToolCalls) > 0 {
			r.FinishReason = "tool_calls"
		}
	}
	return r
}
