package responses

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// The types of items and of their pieces.
const (
	itemMessage   = "message"
	itemCall      = "function_call"
	itemResult    = "function_call_output"
	itemReasoning = "reasoning"
	contentInput  = "input_text"
	contentOutput = "output_text"
)

// maxCallID is the longest id of a call that the service accepts, in characters.
const maxCallID = 64

// messageItem is a message of a request. One of the assistant has no id: with it, the
// service demands the reasoning that led to it.
type messageItem struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Phase   string  `json:"phase,omitempty"`
	Content []input `json:"content"`
}

// input is a piece of a message or of a result: a text, an image or a file.
type input struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	ImageURL string  `json:"image_url,omitempty"`
	Filename string  `json:"filename,omitempty"`
	FileData string  `json:"file_data,omitempty"`
}

// callItem is a call. It has no id, like a message of the assistant.
type callItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// resultItem is the result of a call: a text, or a list.
type resultItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"`
}

// message writes the items of a message.
func (b *body) message(m *harnessv1.Message) error {
	text, err := adapter.Inline(m.GetContent())
	if err != nil {
		return err
	}
	switch m.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		return b.item(messageItem{Type: itemMessage, Role: "system", Content: []input{textInput(contentInput, text)}})
	case harnessv1.Role_ROLE_USER:
		list, err := inputs(m, text)
		if err != nil {
			return err
		}
		return b.item(messageItem{Type: itemMessage, Role: "user", Content: list})
	case harnessv1.Role_ROLE_TOOL:
		return b.result(m, text)
	case harnessv1.Role_ROLE_ASSISTANT:
		items, err := answerItems(m, text)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := b.item(item); err != nil {
				return err
			}
		}
		return nil
	case harnessv1.Role_ROLE_UNSPECIFIED:
	}
	return fmt.Errorf("role %s", m.GetRole())
}

// result writes a result. Without media it is a text.
func (b *body) result(m *harnessv1.Message, text string) error {
	list, err := inputs(m, text)
	if err != nil {
		return err
	}
	item := resultItem{Type: itemResult, CallID: callID(m.GetToolCallId()), Output: text}
	if len(list) > 1 || list[0].Text == nil {
		item.Output = list
	}
	return b.item(item)
}

// inputs returns the text of a message followed by its media. An empty text is left out
// if there are media.
func inputs(m *harnessv1.Message, text string) ([]input, error) {
	var list []input
	for _, p := range m.GetParts() {
		if p.GetMedia() == nil {
			continue
		}
		c, err := mediaInput(p.GetMedia())
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if text != "" || len(list) == 0 {
		list = append([]input{textInput(contentInput, text)}, list...)
	}
	return list, nil
}

func textInput(kind, text string) input { return input{Type: kind, Text: &text} }

// mediaInput returns an image or a document with its bytes.
func mediaInput(m *harnessv1.Media) (input, error) {
	if len(m.GetData()) == 0 {
		return input{}, fmt.Errorf("the bytes of its %s are not inline", m.GetType())
	}
	address := "data:" + m.GetType() + ";base64," + base64.StdEncoding.EncodeToString(m.GetData())
	switch {
	case strings.HasPrefix(m.GetType(), "image/"):
		return input{Type: "input_image", ImageURL: address}, nil
	case m.GetType() == "application/pdf":
		name := m.GetName()
		if name == "" {
			name = "document.pdf"
		}
		return input{Type: "input_file", Filename: name, FileData: address}, nil
	}
	return input{}, fmt.Errorf("media of the type %q", m.GetType())
}

// answer collects the items of an answer.
type answer struct {
	message *harnessv1.Message
	rest    string // the text that no part has covered
	items   []any
	called  []bool // the calls that a part has named
	err     error
}

// answerItems returns the items of an answer in the order of its parts. Text and calls
// that the parts do not cover follow them. Reasoning that nothing follows is left out:
// the service refuses it.
func answerItems(m *harnessv1.Message, text string) ([]any, error) {
	a := &answer{message: m, rest: text, called: make([]bool, len(m.GetToolCalls()))}
	for _, p := range m.GetParts() {
		a.part(p)
	}
	a.text(len(a.rest), nil)
	for i := range m.GetToolCalls() {
		a.call(i)
	}
	for len(a.items) > 0 {
		if _, opaque := a.items[len(a.items)-1].(json.RawMessage); !opaque {
			break
		}
		a.items = a.items[:len(a.items)-1]
	}
	return a.items, a.err
}

func (a *answer) part(p *harnessv1.Part) {
	switch kind := p.GetKind().(type) {
	case *harnessv1.Part_Text:
		a.text(int(min(kind.Text, uint64(len(a.rest)))), p.GetOpaque()) //nolint:gosec // at most the length
	case *harnessv1.Part_Call:
		a.call(int(kind.Call))
	case *harnessv1.Part_Reasoning:
		a.reasoning(p.GetOpaque().GetInline())
	}
}

// text adds a message with the next size bytes of the text, unless they are blank.
func (a *answer) text(size int, opaque *harnessv1.Opaque) {
	piece := a.rest[:size]
	a.rest = a.rest[size:]
	if strings.TrimSpace(piece) == "" {
		return
	}
	var phase struct {
		Phase string `json:"phase"`
	}
	_ = json.Unmarshal(opaque.GetInline(), &phase) // without a phase there is none to send
	a.items = append(a.items, messageItem{Type: itemMessage, Role: "assistant", Phase: phase.Phase, Content: []input{textInput(contentOutput, piece)}})
}

// call adds a call, once.
func (a *answer) call(i int) {
	if i >= len(a.called) || a.called[i] {
		return
	}
	a.called[i] = true
	c := a.message.GetToolCalls()[i]
	arguments, err := adapter.Inline(c.GetArguments())
	if err != nil {
		a.err = err
		return
	}
	a.items = append(a.items, callItem{
		Type: itemCall, CallID: callID(c.GetId()), Name: model.SendableName(c.GetName()), Arguments: model.SendableArguments(arguments),
	})
}

// reasoning adds an item of reasoning as it came, unless no request can have it.
func (a *answer) reasoning(raw []byte) {
	if len(raw) > 0 && model.SendableOpaque(raw) {
		a.items = append(a.items, json.RawMessage(raw))
	}
}

// callID returns an id that the service accepts: an id of up to 64 characters unchanged,
// a longer one as a digest. Services make longer ids than they accept.
func callID(id string) string {
	id = model.SendableText(id)
	if utf8.RuneCountInString(id) <= maxCallID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}
