package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// block is a block of the content of a message.
type block interface {
	// setMark sets a cache mark and reports whether the block can have one.
	setMark() bool
	// isResult reports whether it is a tool_result, and isThinking whether it is a block
	// that only the model reads.
	isResult() bool
	isThinking() bool
}

// requestBlock is a block of type text, tool_use, tool_result, image or document. A
// pointer tells a member that is left out from an empty one.
type requestBlock struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text,omitempty"`        // of a text
	ID           string          `json:"id,omitempty"`          // of a tool_use, as are Name and Input
	Name         string          `json:"name,omitempty"`        //
	Input        json.RawMessage `json:"input,omitempty"`       //
	ToolUseID    string          `json:"tool_use_id,omitempty"` // of a tool_result, as are IsError and Content
	IsError      bool            `json:"is_error,omitempty"`    //
	Content      []*requestBlock `json:"content,omitempty"`     //
	Title        string          `json:"title,omitempty"`       // of a document
	Source       *mediaSource    `json:"source,omitempty"`      // of an image or a document
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// mediaSource has the bytes of an image or a document, which are encoded as base64.
type mediaSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// cacheControl is a mark: the provider caches the prompt up to it.
type cacheControl struct {
	Type string `json:"type"`
}

func cacheMark() *cacheControl { return &cacheControl{Type: "ephemeral"} }

func (b *requestBlock) setMark() bool {
	b.CacheControl = cacheMark()
	return true
}

func (b *requestBlock) isResult() bool   { return b.Type == "tool_result" }
func (b *requestBlock) isThinking() bool { return false }

// thinkingBlock is a block of thinking as it came. The service refuses one with a
// cache mark.
type thinkingBlock json.RawMessage

func (thinkingBlock) setMark() bool    { return false }
func (thinkingBlock) isResult() bool   { return false }
func (thinkingBlock) isThinking() bool { return true }

func textBlock(text string) *requestBlock { return &requestBlock{Type: "text", Text: &text} }

func callBlock(call *harnessv1.ToolCall) (*requestBlock, error) {
	arguments, err := adapter.Inline(call.GetArguments())
	if err != nil {
		return nil, err
	}
	return &requestBlock{
		Type: "tool_use", ID: safeID(call.GetId()), Name: model.SendableName(call.GetName()),
		Input: json.RawMessage(model.SendableArguments(arguments)),
	}, nil
}

func resultBlock(m *harnessv1.Message, text string) *requestBlock {
	b := &requestBlock{Type: "tool_result", ToolUseID: safeID(m.GetToolCallId()), IsError: m.GetIsError()}
	if b.IsError && blank(text) {
		text = "error" // the service refuses an error without a text
	}
	if !blank(text) {
		b.Content = []*requestBlock{textBlock(text)}
	}
	return b
}

// mediaBlocks returns the images and documents of a message.
func mediaBlocks(m *harnessv1.Message) ([]*requestBlock, error) {
	var blocks []*requestBlock
	for _, p := range m.GetParts() {
		media := p.GetMedia()
		if media == nil {
			continue
		}
		if len(media.GetData()) == 0 {
			return nil, errors.New("the data of its media is not inline")
		}
		b := &requestBlock{Type: "image", Source: &mediaSource{Type: "base64", MediaType: media.GetType(), Data: media.GetData()}}
		if media.GetType() == "application/pdf" {
			b.Type, b.Title = "document", media.GetName()
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// answerBlocks returns the blocks of an answer, in the order of its parts, if it has
// some that cover it, else its text followed by its calls.
func answerBlocks(m *harnessv1.Message, text string) ([]block, error) {
	if covers(m.GetParts(), m, text) {
		return partBlocks(m, text)
	}
	blocks := make([]block, 0, 1+len(m.GetToolCalls()))
	if !blank(text) {
		blocks = append(blocks, textBlock(text))
	}
	for _, call := range m.GetToolCalls() {
		b, err := callBlock(call)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// partBlocks returns the blocks of an answer whose parts cover it.
func partBlocks(m *harnessv1.Message, text string) ([]block, error) {
	blocks := make([]block, 0, len(m.GetParts()))
	for _, p := range m.GetParts() {
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			if piece := text[:kind.Text]; !blank(piece) {
				blocks = append(blocks, textBlock(piece))
			}
			text = text[kind.Text:]
		case *harnessv1.Part_Call:
			b, err := callBlock(m.GetToolCalls()[kind.Call])
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, b)
		case *harnessv1.Part_Reasoning:
			if raw := p.GetOpaque().GetInline(); len(raw) > 0 {
				blocks = append(blocks, thinkingBlock(raw))
			}
		}
	}
	return withSendableThinking(blocks), nil
}

// covers reports whether parts name each byte of the text and each call of an answer
// once, in order.
func covers(parts []*harnessv1.Part, m *harnessv1.Message, text string) bool {
	if len(parts) == 0 {
		return false
	}
	calls := 0
	rest := uint64(len(text))
	for _, p := range parts {
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			if kind.Text > rest {
				return false
			}
			rest -= kind.Text
		case *harnessv1.Part_Call:
			if uint64(kind.Call) != uint64(calls) {
				return false
			}
			calls++
		}
	}
	return rest == 0 && calls == len(m.GetToolCalls())
}

// withSendableThinking returns blocks without their thinking if the service refuses it:
// if nothing follows it, or no request can have it.
// The thinking of an answer is sent all or none.
func withSendableThinking(blocks []block) []block {
	sendable := len(blocks) > 0 && !blocks[len(blocks)-1].isThinking()
	for _, b := range blocks {
		if raw, is := b.(thinkingBlock); is && !model.SendableOpaque(raw) {
			sendable = false
		}
	}
	if sendable {
		return blocks
	}
	var rest []block
	for _, b := range blocks {
		if !b.isThinking() {
			rest = append(rest, b)
		}
	}
	return rest
}

// blank reports whether the service refuses a text as empty.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
