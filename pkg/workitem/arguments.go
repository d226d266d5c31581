package workitem

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// arguments are the arguments of a call, as the model wrote them.
type arguments map[string]json.RawMessage

func parseArguments(text string) (arguments, error) {
	if strings.TrimSpace(text) == "" {
		return arguments{}, nil
	}
	var a arguments
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return a, nil
}

// text returns the argument with a name: empty if it is missing or null, and the JSON of
// a number, a bool or an object.
func (a arguments) text(name string) string {
	raw := bytes.TrimSpace(a[name])
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// name returns a text argument without surrounding white space.
func (a arguments) name(name string) string { return strings.TrimSpace(a.text(name)) }
