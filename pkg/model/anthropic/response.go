package anthropic

import (
	"encoding/json"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// message is a whole response, or the frame of a streamed one.
type message struct {
	Type        string          `json:"type"`
	Model       string          `json:"model"`
	Content     []responseBlock `json:"content"`
	Stop        string          `json:"stop_reason"`
	StopDetails json.RawMessage `json:"stop_details"`
	Usage       usage           `json:"usage"`
	Error       json.RawMessage `json:"error"`
}

// responseBlock is a part of a response: text, tool_use, thinking, redacted_thinking, or
// one that is not read.
type responseBlock struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Thinking string          `json:"-"`
	raw      json.RawMessage // the whole block, of thinking
}

// size returns the bytes that the start of a block adds to the answer.
func (b *responseBlock) size() int {
	return adapter.PieceBytes + len(b.Text) + len(b.ID) + len(b.Name) + len(b.Input) + len(b.raw)
}

// UnmarshalJSON keeps a block of thinking as JSON, and reads only the type of a block of
// an unknown type: its other members may have any form.
func (b *responseBlock) UnmarshalJSON(data []byte) error {
	var head struct {
		Type     string          `json:"type"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	switch head.Type {
	case "text", "tool_use":
		type plain responseBlock
		return json.Unmarshal(data, (*plain)(b))
	case "thinking", "redacted_thinking":
		*b = responseBlock{Type: head.Type, Thinking: wire.Text(head.Thinking), raw: append(json.RawMessage(nil), data...)}
	default:
		*b = responseBlock{Type: head.Type}
	}
	return nil
}

// usage is the usage as the protocol counts it: InputTokens are those that
// neither came from the cache nor were written to it. A missing member is nil.
type usage struct {
	InputTokens   *int64 `json:"input_tokens"`
	OutputTokens  *int64 `json:"output_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
	OutputDetails struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// merge takes the members of a later report, which are totals. Gateways end a stream with
// zeros instead: the greatest counts.
func (u *usage) merge(later usage) {
	for _, f := range []struct{ have, reported **int64 }{
		{&u.InputTokens, &later.InputTokens}, {&u.OutputTokens, &later.OutputTokens},
		{&u.CacheCreation, &later.CacheCreation}, {&u.CacheRead, &later.CacheRead},
		{&u.OutputDetails.Thinking, &later.OutputDetails.Thinking},
	} {
		if *f.reported != nil && (*f.have == nil || **f.reported > **f.have) {
			*f.have = *f.reported
		}
	}
}

// into sets the usage of r as the loop counts it: the input is everything that
// was sent, including what came from the cache.
func (u usage) into(r *model.Response) {
	written, cached, output := count(u.CacheCreation), count(u.CacheRead), count(u.OutputTokens)
	r.Usage = &harnessv1.Usage{
		InputTokens: count(u.InputTokens) + written + cached, OutputTokens: output, CachedInputTokens: cached,
		CacheWriteTokens: written, ReasoningTokens: min(count(u.OutputDetails.Thinking), output),
	}
}

func count(n *int64) uint64 {
	if n == nil {
		return 0
	}
	return adapter.Count(*n)
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
	var a answer
	for _, b := range m.Content {
		a.start(0, b)
	}
	r := a.response(m.Stop, m.StopDetails)
	r.Model = m.Model
	m.Usage.into(r)
	return r, nil
}

// finishReason translates the stop reason. pause_turn, in which a tool of the
// server would continue, is not requested and counts as an end.
func finishReason(stop string, calls []*harnessv1.ToolCall) string {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case stopRefusal:
		return "content_filter"
	case "end_turn", "stop_sequence", "pause_turn":
		return "stop"
	case "tool_use":
		return "tool_calls"
	default:
		return adapter.FinishReason(calls)
	}
}

const (
	stopRefusal = "refusal"
	// maxRefusal bounds the reason of a refusal, in bytes.
	maxRefusal = 200
)

// refusalReason returns the category of a refusal and its explanation as one line.
func refusalReason(details json.RawMessage) string {
	var d struct {
		Category    wire.String `json:"category"`
		Explanation wire.String `json:"explanation"`
	}
	if wire.Absent(details) || json.Unmarshal(details, &d) != nil {
		return ""
	}
	reason := strings.Join(strings.Fields(string(d.Category)), " ")
	if explanation := strings.Join(strings.Fields(string(d.Explanation)), " "); explanation != "" {
		if reason != "" {
			reason += ": "
		}
		reason += explanation
	}
	if len(reason) > maxRefusal {
		reason = strings.ToValidUTF8(reason[:maxRefusal-len("…")], "") + "…"
	}
	return reason
}
