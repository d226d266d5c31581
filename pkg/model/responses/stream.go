package responses

import (
	"cmp"
	"encoding/json"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// partBreak is between the parts of reasoning.
const partBreak = "\n\n"

// The ends of a response.
const (
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// decoder decodes responses of one server.
type decoder struct{ refusals adapter.Refusals }

func (d *decoder) stream() *stream {
	return &stream{decoder: d, byIndex: map[int64]*item{}, byID: map[string]*item{}}
}

// event is an event of a stream.
type event struct {
	Type         wire.String     `json:"type"`
	Response     json.RawMessage `json:"response"`
	Index        *wire.Int       `json:"output_index"`
	ItemID       wire.String     `json:"item_id"`
	Item         json.RawMessage `json:"item"`
	Delta        wire.String     `json:"delta"`
	SummaryIndex wire.Int        `json:"summary_index"`
	ContentIndex wire.Int        `json:"content_index"`
	Name         wire.String     `json:"name"`
	Arguments    wire.String     `json:"arguments"`
	Error        json.RawMessage `json:"error"`
}

// response is a whole response, or the state of one within an event.
type response struct {
	Model      wire.String                `json:"model"`
	Status     wire.String                `json:"status"`
	Output     wire.List[json.RawMessage] `json:"output"`
	Usage      *usage                     `json:"usage"`
	Error      json.RawMessage            `json:"error"`
	Incomplete struct {
		Reason wire.String `json:"reason"`
	} `json:"incomplete_details"`
}

type usage struct {
	Input   wire.Int `json:"input_tokens"`
	Output  wire.Int `json:"output_tokens"`
	Details struct {
		Cached  wire.Int `json:"cached_tokens"`
		Written wire.Int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning wire.Int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) proto() *harnessv1.Usage {
	if u == nil {
		return &harnessv1.Usage{}
	}
	return &harnessv1.Usage{
		InputTokens: adapter.Count(int64(u.Input)), OutputTokens: adapter.Count(int64(u.Output)),
		CachedInputTokens: adapter.Count(int64(u.Details.Cached)), CacheWriteTokens: adapter.Count(int64(u.Details.Written)),
		ReasoningTokens: adapter.Count(int64(u.OutputDetails.Reasoning)),
	}
}

// stream builds a response from events.
type stream struct {
	decoder *decoder
	items   []*item // in the order of arrival
	byIndex map[int64]*item
	byID    map[string]*item
	model   string
	end     *response     // nil: the response is not complete
	shown   *item         // whose reasoning the last delta of reasoning was of
	part    reasoningPart // the part of it
	done    bool          // no further event is of use
	size    int
}

// Add implements adapter.Stream. An error event, a failed response and an event that is
// not JSON end the try.
func (s *stream) Add(kind string, data []byte) (model.Delta, error) {
	if string(data) == "[DONE]" {
		s.done = true
		return model.Delta{}, nil
	}
	var e event
	if kind != "error" {
		if err := wire.Unmarshal(data, &e); err != nil {
			return model.Delta{}, adapter.Cut("the stream has an event that is not a JSON object", err)
		}
		if e.Type != "" {
			kind = string(e.Type)
		}
		if kind == "" {
			if err := chatAnswer(data); err != nil {
				return model.Delta{}, err
			}
		}
	}
	switch kind {
	case "error":
		return model.Delta{}, s.decoder.reported(data)
	case "response.failed":
		if wire.Absent(e.Response) {
			return model.Delta{}, s.decoder.reported(data)
		}
		return model.Delta{}, s.decoder.reported(e.Response)
	case "response.completed", "response.done":
		return s.finish(e.Response, statusCompleted)
	case "response.incomplete":
		return s.finish(e.Response, statusIncomplete)
	case "response.created", "response.in_progress":
		var r response
		_ = wire.Unmarshal(e.Response, &r) // its model is optional
		s.model = cmp.Or(string(r.Model), s.model)
		return model.Delta{}, nil
	}
	if !wire.Absent(e.Error) {
		return model.Delta{}, s.decoder.reported(data)
	}
	return s.addItem(kind, &e), nil
}

// addItem takes an event about an item.
func (s *stream) addItem(kind string, e *event) model.Delta {
	switch kind {
	case "response.output_item.added":
		s.itemAdded(e)
	case "response.output_item.done":
		return s.itemDone(e)
	case "response.output_text.delta":
		if i := s.openItem(e, itemMessage); i != nil {
			i.pieces.text.WriteString(s.counted(i, e.Delta))
			return model.Delta{Text: string(e.Delta)}
		}
	case "response.refusal.delta":
		if i := s.openItem(e, itemMessage); i != nil {
			i.pieces.refusal.WriteString(s.counted(i, e.Delta))
		}
	case "response.reasoning_summary_text.delta":
		return s.addReasoning(e, reasoningPart{"summary", e.SummaryIndex})
	case "response.reasoning_text.delta":
		return s.addReasoning(e, reasoningPart{"text", e.ContentIndex})
	case "response.function_call_arguments.delta":
		if i := s.openItem(e, itemCall); i != nil {
			i.pieces.arguments.WriteString(s.counted(i, e.Delta))
		}
	case "response.function_call_arguments.done":
		if i := s.openItem(e, itemCall); i != nil {
			i.name, i.Arguments = string(e.Name), e.Arguments
			s.count(i, len(i.Arguments))
		}
	}
	return model.Delta{}
}

// addReasoning takes a delta of reasoning. A blank line precedes each part but the first.
func (s *stream) addReasoning(e *event, part reasoningPart) model.Delta {
	i := s.openItem(e, itemReasoning)
	if i == nil || e.Delta == "" {
		return model.Delta{}
	}
	text := s.counted(i, e.Delta)
	if i.pieces.reasoning.Len() > 0 && i.pieces.part != part {
		i.pieces.reasoning.WriteString(partBreak)
	}
	i.pieces.reasoning.WriteString(text)
	i.pieces.part = part
	if s.shown != nil && (s.shown != i || s.part != part) {
		text = partBreak + text
	}
	s.shown, s.part = i, part
	return model.Delta{Reasoning: text}
}

// finish takes the end of the response. The service may leave out the output there; what
// it contains of items that are not closed yet is taken from it.
func (s *stream) finish(raw json.RawMessage, status wire.String) (model.Delta, error) {
	var r response
	if !wire.Absent(raw) {
		if err := wire.Unmarshal(raw, &r); err != nil {
			return model.Delta{}, adapter.Cut("the response is not a JSON object", err)
		}
	}
	if r.Status == statusFailed {
		return model.Delta{}, s.decoder.reported(raw)
	}
	if r.Status != statusIncomplete {
		r.Status = status
	}
	delta := s.addOutput(r.Output)
	s.model = cmp.Or(string(r.Model), s.model)
	s.end, s.done = &r, true
	return delta, nil
}

// counted returns a delta of an item as a text, and counts it.
func (s *stream) counted(i *item, delta wire.String) string {
	i.streamed += len(delta)
	s.count(i, i.streamed)
	return string(delta)
}

// count counts that an item has size bytes: what closes it repeats its deltas.
func (s *stream) count(i *item, size int) {
	if size > i.size {
		s.size += size - i.size
		i.size = size
	}
}

// Size implements adapter.Stream.
func (s *stream) Size() int { return s.size }

// Complete implements adapter.Stream.
func (s *stream) Complete() bool { return s.end != nil }

// Ended implements adapter.Stream.
func (s *stream) Ended() bool { return s.done }

// Response implements adapter.Stream.
func (s *stream) Response() *model.Response {
	items := s.inOrder()
	r := answerOf(items)
	end := s.end
	if end == nil {
		end = &response{}
	}
	r.Usage, r.Model, r.FinishReason = end.Usage.proto(), s.model, adapter.FinishReason(r.ToolCalls)
	refusal, refused := refusalOf(items)
	switch {
	case refused:
		r.FinishReason, r.Refusal = "content_filter", refusal
	case end.Status != statusIncomplete:
	case end.Incomplete.Reason == "content_filter":
		r.FinishReason, r.Refusal = "content_filter", "content_filter"
	default:
		r.FinishReason = "length"
	}
	return r
}

// inOrder returns the items by their places; those with one place as they arrived.
func (s *stream) inOrder() []*item {
	items := slices.Clone(s.items)
	slices.SortStableFunc(items, func(a, b *item) int { return cmp.Compare(a.index, b.index) })
	return items
}

// decode reads a response that is one JSON object.
func (d *decoder) decode(raw []byte) (*model.Response, error) {
	var r response
	if err := wire.Unmarshal(raw, &r); err != nil {
		return nil, adapter.Cut("the response is not JSON", err)
	}
	if !wire.Absent(r.Error) {
		return nil, d.reported(raw)
	}
	switch r.Status {
	case statusCompleted, statusIncomplete, statusFailed:
	case "":
		if err := chatAnswer(raw); err != nil {
			return nil, err
		}
		if r.Output == nil {
			return nil, adapter.Cut("the response has no output", nil)
		}
	default:
		return nil, adapter.Cut("the response is "+string(r.Status), nil)
	}
	s := d.stream()
	if _, err := s.finish(raw, statusCompleted); err != nil {
		return nil, err
	}
	return s.Response(), nil
}
