package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// goOn stands where the protocol wants a word of the user and there is none: in
// front of an answer that comes first, and behind one that comes last, which the
// model would otherwise take for the beginning of its own.
const goOn = "Go on."

// params is the body of the request. It fails on what a valid request never
// holds: a role that is not set, contents that are not inline, a schema that is
// no JSON object.
func params(req *model.Request, name string, maxOutput uint32) (sdk.MessageNewParams, error) {
	p := sdk.MessageNewParams{Model: name, MaxTokens: int64(maxOutput)}
	for i, t := range req.Tools {
		tool, err := toolParam(t, i == len(req.Tools)-1)
		if err != nil {
			return p, invalid("tool %s: %v", t.GetName(), err)
		}
		p.Tools = append(p.Tools, tool)
	}
	var c composing
	for _, m := range req.Messages {
		if err := c.add(m); err != nil {
			return p, invalid("message %d: %v", m.GetId(), err)
		}
	}
	p.System, p.Messages = c.finish()
	return p, nil
}

// composing turns a conversation into that of the protocol: the system prompt
// apart; roles that alternate, beginning with the user's; the results of all calls
// of a message at the front of the message behind it; no empty text.
type composing struct {
	system   []sdk.TextBlockParam
	messages []sdk.MessageParam
}

func (c *composing) add(m *harnessv1.Message) error {
	text, err := inline(m.GetContent())
	if err != nil {
		return err
	}
	switch m.GetRole() {
	case harnessv1.Role_ROLE_SYSTEM:
		switch {
		case blank(text):
		case len(c.messages) == 0:
			c.system = append(c.system, sdk.TextBlockParam{Text: text})
		default: // the prompt is the prefix; what comes later stays where it is
			c.say(sdk.MessageParamRoleUser, textBlock(text))
		}
		return nil
	case harnessv1.Role_ROLE_USER:
		if !blank(text) {
			c.say(sdk.MessageParamRoleUser, textBlock(text))
		}
		return nil
	case harnessv1.Role_ROLE_TOOL:
		c.say(sdk.MessageParamRoleUser, resultBlock(m, text))
		return nil
	case harnessv1.Role_ROLE_ASSISTANT:
		return c.answer(m, text)
	default:
		return fmt.Errorf("role %s", m.GetRole())
	}
}

func (c *composing) answer(m *harnessv1.Message, text string) error {
	if !blank(text) {
		c.say(sdk.MessageParamRoleAssistant, textBlock(text))
	}
	for _, call := range m.GetToolCalls() {
		arguments, err := inline(call.GetArguments())
		if err != nil {
			return err
		}
		c.say(sdk.MessageParamRoleAssistant, sdk.ContentBlockParamUnion{OfToolUse: &sdk.ToolUseBlockParam{
			ID: safeID(call.GetId()), Name: model.SendableName(call.GetName()),
			Input: json.RawMessage(model.SendableArguments(arguments)),
		}})
	}
	return nil
}

// say adds a block to the newest message of the role, or begins one.
func (c *composing) say(role sdk.MessageParamRole, b sdk.ContentBlockParamUnion) {
	if len(c.messages) == 0 && role != sdk.MessageParamRoleUser {
		c.say(sdk.MessageParamRoleUser, textBlock(goOn))
	}
	if n := len(c.messages); n > 0 && c.messages[n-1].Role == role {
		c.messages[n-1].Content = append(c.messages[n-1].Content, b)
		return
	}
	c.messages = append(c.messages, sdk.MessageParam{Role: role, Content: []sdk.ContentBlockParamUnion{b}})
}

// finish sets the marks up to which the provider is to cache, of which a request
// may have four. One stands at the tools (see toolParam), which rarely change, and
// one at the system prompt. Two roll: the newest block, which the next turn's
// request will begin with, and the block that was the newest one a turn ago. The
// provider looks back only some twenty blocks from a mark; a turn with many
// calls would otherwise not find what the turn before it left.
func (c *composing) finish() ([]sdk.TextBlockParam, []sdk.MessageParam) {
	if n := len(c.system); n > 0 {
		c.system[n-1].CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	marks := 2
	for i := len(c.messages) - 1; i >= 0 && marks > 0; i-- {
		// An answer is marked only where it is the newest: no request ended there.
		if c.messages[i].Role != sdk.MessageParamRoleUser && i < len(c.messages)-1 {
			continue
		}
		blocks := c.messages[i].Content
		*blocks[len(blocks)-1].GetCacheControl() = sdk.NewCacheControlEphemeralParam()
		marks--
	}
	if n := len(c.messages); n == 0 || c.messages[n-1].Role != sdk.MessageParamRoleUser {
		c.say(sdk.MessageParamRoleUser, textBlock(goOn))
	}
	return c.system, c.messages
}

func textBlock(text string) sdk.ContentBlockParamUnion {
	return sdk.ContentBlockParamUnion{OfText: &sdk.TextBlockParam{Text: text}}
}

func resultBlock(m *harnessv1.Message, text string) sdk.ContentBlockParamUnion {
	r := &sdk.ToolResultBlockParam{ToolUseID: safeID(m.GetToolCallId())}
	if m.GetIsError() {
		r.IsError = param.NewOpt(true)
		if blank(text) {
			text = "error" // the service refuses an error that says nothing
		}
	}
	if !blank(text) {
		r.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: r}
}

// blank says that a text is one that the service refuses as empty.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// escaped begins an id that safeID has changed.
const escaped = "x-"

// safeID makes a call's id into one that the service takes: letters, digits, _
// and -. Ids come from other providers too, when a fallback model goes on with a
// conversation. Two ids never become one: all but letters and digits of a changed
// id are written as _ and two hexadecimal digits a byte, behind "x-"; and an id
// that begins like a changed one is changed too.
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

// toolParam passes the schema on as it is written: its bytes are part of the
// prefix that the provider caches. The service demands that it says that it is an
// object's.
func toolParam(t *harnessv1.ToolSpec, last bool) (sdk.ToolUnionParam, error) {
	schema := strings.TrimSpace(t.GetParametersSchema())
	if schema == "" {
		schema = "{}"
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(schema), &members) != nil || members == nil {
		return sdk.ToolUnionParam{}, fmt.Errorf("its parameters schema is not a JSON object")
	}
	if _, has := members["type"]; !has {
		rest := strings.TrimSpace(schema[1:])
		comma := ","
		if len(members) == 0 {
			comma = ""
		}
		schema = `{"type":"object"` + comma + rest
	}
	f := struct {
		Name         string                          `json:"name"`
		Description  string                          `json:"description,omitempty"`
		InputSchema  json.RawMessage                 `json:"input_schema"`
		CacheControl *sdk.CacheControlEphemeralParam `json:"cache_control,omitempty"`
	}{Name: t.GetName(), Description: t.GetDescription(), InputSchema: json.RawMessage(schema)}
	if last {
		mark := sdk.NewCacheControlEphemeralParam()
		f.CacheControl = &mark
	}
	tool := param.Override[sdk.ToolParam](f)
	return sdk.ToolUnionParam{OfTool: &tool}, nil
}

func inline(c *harnessv1.Content) (string, error) {
	if c.GetBlob() != nil {
		return "", fmt.Errorf("content %s is not inline", c.GetBlob().GetDigest())
	}
	return c.GetInline(), nil
}

func invalid(format string, args ...any) *model.Error {
	return &model.Error{RetryAfter: -1, Message: "the request cannot be sent: " + fmt.Sprintf(format, args...)}
}
