package mark

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// preserve returns fields with their values in the arguments of a call. Those that are not
// there are left for the result.
func preserve(names []string, given map[string]json.RawMessage) []*harnessv1.PreservedField {
	var fields []*harnessv1.PreservedField
	for _, name := range names {
		if name == "" || len(name) > maxName || len(fields) == maxFields {
			continue
		}
		fields = append(fields, &harnessv1.PreservedField{Name: name, Value: valueOf(given[name])})
	}
	return fields
}

// members returns the members of a JSON object; none if a text is no object. Of a text that
// is cut off it returns those before the cut.
func members(text string) map[string]json.RawMessage {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	all := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		if name, ok := name.(string); ok {
			all[name] = value
		}
	}
	return all
}

// valueOf returns a JSON value as a field has it: one line of at most maxValue bytes, a
// string without quotes. It is empty for null.
func valueOf(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return content.Line(text, maxValue)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return ""
	}
	return content.Line(compact.String(), maxValue)
}

// Fields that the end of a call has whatever its tool returns.
const (
	exitCodeField = "exit_code"
	successField  = "success"
)

// outcome is the end of a call.
type outcome struct {
	text     string
	failed   bool
	exitCode *int32
}

// searched is how much of a result is searched for fields, in bytes from its beginning.
const searched = 256 << 10

// complete returns fields with the values that the result has. Those without a value are
// left out.
func complete(fields []*harnessv1.PreservedField, o outcome) []*harnessv1.PreservedField {
	o.text = content.Cut(o.text[:min(len(o.text), searched)], searched)
	var object map[string]json.RawMessage
	if strings.HasPrefix(strings.TrimSpace(o.text), "{") {
		object = members(o.text)
	}
	var all []*harnessv1.PreservedField
	for _, f := range fields {
		value := f.GetValue()
		if value == "" {
			value = o.value(f.GetName(), object)
		}
		if value != "" {
			all = append(all, &harnessv1.PreservedField{Name: f.GetName(), Value: value})
		}
	}
	return all
}

// value returns a field of the result; empty if it has none.
func (o outcome) value(name string, object map[string]json.RawMessage) string {
	if value := valueOf(object[name]); value != "" {
		return value
	}
	if name == exitCodeField && o.exitCode != nil {
		return strconv.Itoa(int(*o.exitCode))
	}
	value := lineOf(o.text, name)
	if value == "" && name == successField {
		return strconv.FormatBool(!o.failed)
	}
	return value
}

// lineOf returns what follows a name and a colon at the beginning of a line.
func lineOf(text, name string) string {
	for rest := text; ; {
		at := strings.Index(rest, name+":")
		if at < 0 {
			return ""
		}
		begins := at == 0 && len(rest) == len(text) || at > 0 && rest[at-1] == '\n'
		rest = rest[at+len(name)+1:]
		if begins {
			line, _, _ := strings.Cut(rest, "\n")
			return content.Line(strings.TrimSpace(line), maxValue)
		}
	}
}
