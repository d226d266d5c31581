package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// continuation is the user text for places where the protocol requires a user
// message and the conversation has none: before an answer that comes first, after one
// that comes last, which the model would otherwise continue, and between two answers
// where the second one was made after the first. Only conversations that earlier
// releases stored need it: where the model is to continue, the conversation has a
// message of the user that is stored.
const continuation = "Go on."

const (
	user      = "user"
	assistant = "assistant"
)

type messagesRequest struct {
	MaxTokens uint32
	Messages  []requestMessage
	requestRest

	// media of results that are errors, which can only have text, follow all results.
	media []*requestBlock
}

// requestRest are the members of a request that follow its messages.
type requestRest struct {
	Model        string          `json:"model"`
	System       []*requestBlock `json:"system,omitempty"`
	Tools        []tool          `json:"tools,omitempty"`
	Stream       bool            `json:"stream,omitempty"`
	Thinking     *thinkingConfig `json:"thinking,omitempty"`
	OutputConfig *outputConfig   `json:"output_config,omitempty"`
}

type requestMessage struct {
	Role    string
	Content []block
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// encode returns the body of a request without its last brace. It fails on what a valid request does
// not have: an unset role, content that is not inline, a schema that is not a
// JSON object.
func encode(req *model.Request, name string, maxTokens uint32, thinking Thinking) (*wire.Body, error) {
	r := &messagesRequest{MaxTokens: maxTokens, requestRest: requestRest{Model: name, Stream: req.Streaming}}
	for i, t := range req.Tools {
		tool, err := encodeTool(t, i == len(req.Tools)-1 && !req.Leaves(memberCache))
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.GetName(), err)
		}
		r.Tools = append(r.Tools, tool)
	}
	for _, m := range req.Messages {
		if err := r.add(m); err != nil {
			return nil, fmt.Errorf("message %d: %w", m.GetId(), err)
		}
	}
	r.flushMedia()
	r.mark(!req.Leaves(memberCache))
	if !req.Leaves(memberThinking) {
		thinking.configure(r, req)
	}
	if err := r.setFormat(req.Schema); err != nil {
		return nil, err
	}
	return r.body()
}

// add translates a message. The protocol has the system prompt outside of the
// messages, roles that alternate and begin with the user's, the results of all
// calls of a message at the start of the next one, and no empty text.
func (r *messagesRequest) add(m *harnessv1.Message) error {
	text, err := adapter.Inline(m.GetContent())
	if err != nil {
		return err
	}
	if m.GetRole() != harnessv1.Role_ROLE_TOOL {
		r.flushMedia()
	}
	switch m.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		switch {
		case blank(text):
		case len(r.Messages) == 0:
			r.System = append(r.System, textBlock(text))
		default: // the prompt is the prefix; a later text keeps its place
			r.append(user, textBlock(text))
		}
		return nil
	case harnessv1.Role_ROLE_USER:
		return r.addUser(m, text)
	case harnessv1.Role_ROLE_TOOL:
		return r.addResult(m, text)
	case harnessv1.Role_ROLE_ASSISTANT:
		return r.addAnswer(m, text)
	case harnessv1.Role_ROLE_UNSPECIFIED:
	}
	return fmt.Errorf("role %s", m.GetRole())
}

func (r *messagesRequest) addUser(m *harnessv1.Message, text string) error {
	media, err := mediaBlocks(m)
	if err != nil {
		return err
	}
	if !blank(text) {
		r.append(user, textBlock(text))
	}
	for _, b := range media {
		r.append(user, b)
	}
	return nil
}

func (r *messagesRequest) addResult(m *harnessv1.Message, text string) error {
	media, err := mediaBlocks(m)
	if err != nil {
		return err
	}
	result := resultBlock(m, text)
	if result.IsError {
		r.media = append(r.media, media...)
	} else {
		result.Content = append(result.Content, media...)
	}
	r.append(user, result)
	return nil
}

// flushMedia adds the media of results that are errors.
func (r *messagesRequest) flushMedia() {
	media := r.media
	r.media = nil
	for _, b := range media {
		r.append(user, b)
	}
}

// addAnswer adds a message of the model. One with parts was made after the answer
// before it, not as a part of it.
func (r *messagesRequest) addAnswer(m *harnessv1.Message, text string) error {
	blocks, err := answerBlocks(m, text)
	if err != nil {
		return err
	}
	if n := len(r.Messages); n > 0 && len(blocks) > 0 && len(m.GetParts()) > 0 && r.Messages[n-1].Role == assistant {
		r.append(user, textBlock(continuation))
	}
	for _, b := range blocks {
		r.append(assistant, b)
	}
	return nil
}

// append adds a block to the newest message if that has the role, else to a new
// message.
func (r *messagesRequest) append(role string, b block) {
	if len(r.Messages) == 0 && role != user {
		r.append(user, textBlock(continuation))
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Content = append(r.Messages[n-1].Content, b)
		return
	}
	r.Messages = append(r.Messages, requestMessage{Role: role, Content: []block{b}})
}

// mark sets the cache marks, of which a request may have four. One is at the
// tools (see encodeTool), which rarely change, and one at the system prompt. Two
// move: the newest block, with which the next turn's request will begin, and the
// block that was the newest a turn ago. The provider looks back only about twenty
// blocks from a mark, so that a turn with many calls would otherwise not find
// the prefix that the turn before it cached. A request whose service refuses marks has none.
func (r *messagesRequest) mark(cached bool) {
	marks := 0
	if cached {
		marks = 2
	}
	if n := len(r.System); n > 0 && cached {
		r.System[n-1].CacheControl = cacheMark()
	}
	for i := len(r.Messages) - 1; i >= 0 && marks > 0; i-- {
		// No request ended with an assistant message, except perhaps this one.
		if r.Messages[i].Role != user && i < len(r.Messages)-1 {
			continue
		}
		if setLastMark(r.Messages[i].Content) {
			marks--
		}
	}
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != user {
		r.append(user, textBlock(continuation))
	}
}

// setLastMark marks the last block that can have a mark.
func setLastMark(blocks []block) bool {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].setMark() {
			return true
		}
	}
	return false
}

// escaped is the prefix of an id that safeID has changed.
const escaped = "x-"

// safeID returns an id that the service accepts: letters, digits, _ and -. Ids
// also come from other providers, when a fallback model continues a conversation.
// Different ids stay different: an id that has other bytes, or begins with
// "x-", is written as "x-" followed by its letters and digits, and by _ with two
// hexadecimal digits for each other byte.
func safeID(id string) string {
	safe := id != "" && !strings.HasPrefix(id, escaped)
	for i := 0; i < len(id) && safe; i++ {
		safe = alphanumeric(id[i]) || id[i] == '_' || id[i] == '-'
	}
	if safe {
		return id
	}
	var b strings.Builder
	b.WriteString(escaped)
	for i := range len(id) {
		if alphanumeric(id[i]) {
			b.WriteByte(id[i])
		} else {
			fmt.Fprintf(&b, "_%02x", id[i])
		}
	}
	return b.String()
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// encodeTool sends the schema as it is written: it is part of the prefix that
// the provider caches. The service requires "type": "object" in it.
func encodeTool(t *harnessv1.ToolSpec, last bool) (tool, error) {
	schema := strings.TrimSpace(t.GetParametersSchema())
	if schema == "" {
		schema = "{}"
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(schema), &members) != nil || members == nil {
		return tool{}, errors.New("its parameters schema is not a JSON object")
	}
	if _, has := members["type"]; !has {
		rest := strings.TrimSpace(schema[1:])
		comma := ","
		if len(members) == 0 {
			comma = ""
		}
		schema = `{"type":"object"` + comma + rest
	}
	encoded := tool{Name: t.GetName(), Description: t.GetDescription(), InputSchema: json.RawMessage(schema)}
	if last {
		encoded.CacheControl = cacheMark()
	}
	return encoded, nil
}
