package anthropic

import (
	"encoding/json"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// event has the members that the provider reads of any event of a stream; the
// types of events share their names.
type event struct {
	Type        string          `json:"type"`
	Index       int             `json:"index"`
	Message     message         `json:"message"`
	Block       responseBlock   `json:"content_block"`
	Delta       delta           `json:"delta"`
	StopDetails json.RawMessage `json:"stop_details"`
	Usage       usage           `json:"usage"`
}

type delta struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	PartialJSON string          `json:"partial_json"`
	Thinking    json.RawMessage `json:"thinking"`
	Signature   json.RawMessage `json:"signature"`
	Stop        string          `json:"stop_reason"`
	StopDetails json.RawMessage `json:"stop_details"`
}

// stream builds a response from events. The zero value is ready.
type stream struct {
	answer      answer
	usage       usage
	model       string
	stop        string
	stopDetails json.RawMessage
	ended       bool
	size        int
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
	return s.add(e), nil
}

func (s *stream) add(e event) model.Delta {
	switch e.Type {
	case "message_start":
		s.model = e.Message.Model
		s.usage.merge(e.Message.Usage)
	case "content_block_start":
		s.size += e.Block.size()
		return s.answer.start(e.Index, e.Block)
	case "content_block_delta":
		return s.addDelta(e.Index, e.Delta)
	case "message_delta":
		if e.Delta.Stop != "" {
			s.stop = e.Delta.Stop
		}
		for _, details := range []json.RawMessage{e.StopDetails, e.Delta.StopDetails} {
			if !wire.Absent(details) {
				s.stopDetails = details
			}
		}
		s.usage.merge(e.Usage)
	case "message_stop":
		s.ended = true
	}
	return model.Delta{}
}

func (s *stream) addDelta(index int, d delta) model.Delta {
	s.size += len(d.Text) + len(d.PartialJSON) + max(len(d.Thinking)-len(`""`), 0) + max(len(d.Signature)-len(`""`), 0)
	switch d.Type {
	case "text_delta":
		return s.answer.addText(index, d.Text)
	case "input_json_delta":
		s.answer.addArguments(index, d.PartialJSON)
	case "thinking_delta":
		return s.answer.addThinking(index, memberThinking, d.Thinking)
	case "signature_delta":
		return s.answer.addThinking(index, memberSignature, d.Signature)
	}
	return model.Delta{}
}

// Size implements adapter.Stream.
func (s *stream) Size() int { return s.size }

// Complete implements adapter.Stream. It requires a stop reason too: a proxy may
// have closed a broken stream in the server's name.
func (s *stream) Complete() bool { return s.ended && s.stop != "" }

// Ended implements adapter.Stream.
func (s *stream) Ended() bool { return s.Complete() }

// Response implements adapter.Stream.
func (s *stream) Response() *model.Response {
	r := s.answer.response(s.stop, s.stopDetails)
	r.Model = s.model
	s.usage.into(r)
	return r
}
