package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Servers deviate from the protocol in single messages: the SDK ends the connection for most of
// them, and with it calls that have nothing to do with the message. readable repairs a message so
// that it fails alone, or not at all.

// envelope is a message of JSON-RPC.
type envelope struct {
	Version json.RawMessage `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  json.RawMessage `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// version is the one of the protocol, as JSON.
const version = `"2.0"`

// errNotJSON is the error of an answer that is cut or broken.
var errNotJSON = errors.New("its answer is not valid JSON")

// readable returns a message as the SDK reads it; nil if it does already, as it reads a batch. The
// error is that of bytes that are no message.
func readable(line []byte) (repaired []byte, err error) {
	message := bytes.TrimSpace(line)
	if len(message) == 0 || message[0] == '[' && json.Valid(message) {
		return nil, nil
	}
	var e envelope
	if json.Unmarshal(message, &e) != nil {
		if id := answeredID(message); id != nil {
			return append(errorResponse(id, jsonrpc.CodeParseError, errNotJSON), '\n'), nil
		}
		return nil, errNoMessage
	}
	if !e.identified() {
		return nil, errNoMessage
	}
	changed := string(e.Version) != version
	e.Version = json.RawMessage(version)
	if e.Method == nil {
		for member, repair := range map[*json.RawMessage]func(json.RawMessage) json.RawMessage{&e.ID: numericID, &e.Result: readableResult, &e.Error: readableError} {
			if repaired := repair(*member); !bytes.Equal(repaired, *member) {
				*member, changed = repaired, true
			}
		}
		if isNull(e.Error) && !isObject(e.Result) {
			return append(errorResponse(e.ID, unreadableCode, notObject(e.Result)), '\n'), nil
		}
	}
	if !changed {
		return nil, nil
	}
	whole, err := json.Marshal(e)
	if err != nil {
		return nil, errNoMessage
	}
	return append(whole, '\n'), nil
}

// unreadableCode is the code of errors that replace answers to calls that have run.
const unreadableCode = -32097

// doubtfulCode is the code of errors that replace answers to calls that may have run.
const doubtfulCode = -32096

// errorResponse returns a response with an error.
func errorResponse(id json.RawMessage, code int64, err error) []byte {
	message, _ := json.Marshal(err.Error()) // a string
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, message)
}

// notObject returns why a result, which is not an object, cannot be read.
func notObject(result json.RawMessage) error {
	kind := "null"
	switch {
	case isNull(result):
	case result[0] == '"':
		kind = "a string"
	case result[0] == '[':
		kind = "a list"
	case result[0] == 't', result[0] == 'f':
		kind = "a boolean"
	default:
		kind = "a number"
	}
	return fmt.Errorf("it is %s, where the protocol has an object", kind)
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// identified reports whether it is a request, a notification, or a response with an id.
func (e *envelope) identified() bool {
	var id any
	if e.ID != nil && json.Unmarshal(e.ID, &id) != nil {
		return false
	}
	switch id.(type) {
	case float64, string:
		return e.Method == nil && (e.Result != nil || e.Error != nil) || e.Method != nil && json.Unmarshal(e.Method, new(string)) == nil
	case nil:
		return e.Method != nil && json.Unmarshal(e.Method, new(string)) == nil
	}
	return false
}

// answeredID returns the id of a broken message that answers a request; nil if it has none.
func answeredID(message []byte) json.RawMessage {
	f := &frame{}
	if f.feed(message) != nil || f.request || !f.result && f.key != "result" || !json.Valid(f.id) {
		return nil
	}
	return numericID(f.id)
}

// numericID returns an id as this client sends it: a number, also if it came as a text.
func numericID(id json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(id, &text) != nil {
		return id
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return json.RawMessage(text)
	}
	return id
}

// readableError returns an error of the protocol, also of a text or of another object.
func readableError(raw json.RawMessage) json.RawMessage {
	if raw == nil || json.Unmarshal(raw, &jsonrpc.Error{}) == nil {
		return raw
	}
	var e struct {
		Code    any `json:"code"`
		Message any `json:"message"`
	}
	code, message := int64(jsonrpc.CodeInternalError), string(raw)
	if json.Unmarshal(raw, &e) == nil {
		if text, ok := e.Message.(string); ok {
			message = text
		}
		switch n := e.Code.(type) {
		case float64:
			code = int64(n)
		case string:
			if parsed, err := strconv.ParseInt(n, 10, 64); err == nil {
				code = parsed
			}
		}
	} else if json.Unmarshal(raw, &message) != nil {
		message = string(raw)
	}
	repaired, _ := json.Marshal(map[string]any{"code": code, "message": message}) // cannot fail
	return repaired
}

// readableResult returns a result whose contents, or whose tools, the SDK reads.
func readableResult(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
		return raw
	}
	tools, listed := members["tools"]
	contents, called := members["content"]
	switch {
	case listed && json.Unmarshal(raw, &mcp.ListToolsResult{}) != nil:
		members["tools"] = readableTools(tools)
		keepDecodable(members, "nextCursor", new(string))
	case called && json.Unmarshal(raw, &mcp.CallToolResult{}) != nil:
		members["content"] = readableContent(contents)
		keepDecodable(members, "isError", new(bool))
	default:
		return raw
	}
	keepDecodable(members, "_meta", &map[string]any{})
	repaired, err := json.Marshal(members)
	if err != nil {
		return raw
	}
	return repaired
}

// keepDecodable removes a member that is not of a type.
func keepDecodable(members map[string]json.RawMessage, name string, of any) {
	if value, ok := members[name]; ok && json.Unmarshal(value, of) != nil {
		delete(members, name)
	}
}

// readableTools returns the tools of a list, without the members of a tool that cannot be read,
// and without tools that have no name.
func readableTools(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return json.RawMessage("[]")
	}
	kept := make([]json.RawMessage, 0, len(list))
	for _, tool := range list {
		var members map[string]json.RawMessage
		if json.Unmarshal(tool, &mcp.Tool{}) == nil {
			kept = append(kept, tool)
			continue
		}
		if json.Unmarshal(tool, &members) != nil {
			continue
		}
		needed := map[string]json.RawMessage{}
		for name, of := range map[string]any{"name": new(string), "description": new(string), "inputSchema": &map[string]any{}} {
			if value, ok := members[name]; ok && json.Unmarshal(value, of) == nil {
				needed[name] = value
			}
		}
		if repaired, err := json.Marshal(needed); err == nil && needed["name"] != nil {
			kept = append(kept, repaired)
		}
	}
	all, _ := json.Marshal(kept) // valid JSON each
	return all
}

// readableContent returns contents of a result. Those of an unknown form become texts of their
// JSON, and a text alone becomes a content.
func readableContent(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	kept := make([]json.RawMessage, 0, len(list))
	for _, part := range list {
		if string(part) == "null" {
			continue
		}
		alone, _ := json.Marshal(map[string][]json.RawMessage{"content": {part}}) // valid JSON
		if json.Unmarshal(alone, &mcp.CallToolResult{}) == nil {
			kept = append(kept, part)
			continue
		}
		text := string(part)
		var plain string
		if json.Unmarshal(part, &plain) == nil {
			text = plain
		}
		shown, _ := json.Marshal(map[string]string{"type": "text", "text": text}) // cannot fail
		kept = append(kept, shown)
	}
	all, _ := json.Marshal(kept) // valid JSON each
	return all
}
