package model

import (
	"encoding/json"
	"strings"
)

// maxSendableName is the longest name of a function that every service accepts.
const maxSendableName = 64

// SendableName returns a tool's name that a model made up as one that services
// accept in a request: 1 to 64 letters, digits, _ and -.
func SendableName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "_"
	}
	return name[:min(len(name), maxSendableName)]
}

// SendableArguments returns the arguments that a model wrote as a JSON object: an
// object unchanged, anything else inside of one. Some services demand an object, and servers
// that fill a template with the arguments refuse a conversation in which they do
// not parse.
func SendableArguments(arguments string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return arguments
	}
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	wrapped, err := json.Marshal(map[string]string{"not_a_json_object": arguments})
	if err != nil {
		return "{}"
	}
	return string(wrapped)
}
