package wire

import (
	"encoding/json"
	"strings"
)

// maxNesting bounds how deep a structured message is read.
const maxNesting = 8

// message returns the text of an error's message. Servers that validate requests send an
// object or an array of {loc, msg, type, input} (docs.pydantic.dev/latest/errors/errors),
// whose input repeats what they have refused: only loc and msg, or the texts of message,
// detail and error, are taken.
func message(raw json.RawMessage) string { return messageIn(raw, maxNesting) }

func messageIn(raw json.RawMessage, depth int) string {
	switch {
	case depth == 0:
		return ""
	case !structured(raw):
		return messageOf(Text(raw), depth-1)
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return joined("; ", list, depth-1)
	}
	var problem struct {
		Loc     json.RawMessage `json:"loc"`
		Msg     json.RawMessage `json:"msg"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal(raw, &problem) != nil {
		return ""
	}
	for _, member := range []json.RawMessage{problem.Msg, problem.Message, problem.Detail, problem.Error} {
		text := messageIn(member, depth-1)
		if text == "" {
			continue
		}
		if place := place(problem.Loc); place != "" {
			text = place + ": " + text
		}
		return text
	}
	return ""
}

// messageOf returns a text without what it repeats of the request. The text may be JSON.
func messageOf(text string, depth int) string {
	if raw := json.RawMessage(strings.TrimSpace(text)); structured(raw) && json.Valid(raw) {
		return messageIn(raw, depth)
	}
	return withoutEcho(text)
}

// joined returns the texts of a list on one line.
func joined(separator string, list []json.RawMessage, depth int) string {
	var texts []string
	for _, raw := range list {
		if text := messageIn(raw, depth); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, separator)
}

// place returns the path of a loc, such as body.messages.1.
func place(loc json.RawMessage) string {
	var path []json.RawMessage
	if json.Unmarshal(loc, &path) != nil {
		return scalar(loc)
	}
	steps := make([]string, 0, len(path))
	for _, step := range path {
		steps = append(steps, scalar(step))
	}
	return strings.Join(steps, ".")
}

// withoutEcho cuts a text where it repeats the request: vLLM sends the problems as Python
// prints them, or a JSON text may be cut off.
func withoutEcho(text string) string {
	for _, echo := range []struct{ of, begin string }{
		{"'loc':", "'input':"}, {`"loc":`, `"input":`}, {"[type=", "input_value="},
	} {
		if at := strings.Index(text, echo.begin); at >= 0 && strings.Contains(text, echo.of) {
			text = text[:at]
		}
	}
	return text
}

// structured reports whether a value is an object or an array.
func structured(raw json.RawMessage) bool { return len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') }
