package workitem

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// arguments are those of a call, as the model wrote them.
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

// text is the argument of that name. A number, a truth value or an object stands
// for its JSON; what is missing or null is empty.
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

// name is a text argument that names something: without white space around it.
func (a arguments) name(name string) string { return strings.TrimSpace(a.text(name)) }
