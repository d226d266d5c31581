package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// edit is a call whose arguments the user changes.
type edit struct {
	// arguments are those of the changed call, as JSON.
	arguments string
}

// editWord returns the part of the prompt about editing, empty where the call cannot be edited.
func (d *decision) editWord() string {
	if d.p.screen.Edit == nil || d.call.GetWait() != nil || d.call.GetArguments().GetBlob() != nil {
		return ""
	}
	return "  [e] edit"
}

// change opens the arguments in the editor, and shows the changed call. A text that gives no
// arguments is kept for the next time.
func (d *decision) change() {
	d.left = true
	original := editable(d.call)
	text := original
	if d.draft != "" {
		text = d.draft
	}
	changed, err := d.p.screen.Edit(text, isText(d.call))
	if err == nil {
		d.draft = changed
		var arguments string
		if arguments, err = edited(d.call, changed); err == nil {
			d.accept(arguments, changed == original)
			return
		}
	}
	d.p.print("%s\n", d.p.clean(err.Error()))
	d.prompt()
}

// accept shows the changed call.
func (d *decision) accept(arguments string, same bool) {
	if same {
		d.edit, d.draft = nil, ""
		d.p.print("Nothing is changed.\n")
		d.prompt()
		return
	}
	d.edit = &edit{arguments: arguments}
	call := proto.CloneOf(d.call)
	call.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: arguments}}
	if call.GetPreview() != nil {
		call.Preview.Files = nil // the diff is that of the former arguments
	}
	d.show(call)
}

// isText reports whether a call is edited as a text: the command itself.
func isText(call *harnessv1.PendingCall) bool {
	_, ok := commandOf(call)
	return isCommand(call) && ok
}

func commandOf(call *harnessv1.PendingCall) (string, bool) {
	var given map[string]any
	if json.Unmarshal([]byte(call.GetArguments().GetInline()), &given) != nil {
		return "", false
	}
	command, ok := given["command"].(string)
	return command, ok
}

// editable returns what a user edits of a call: its command, or its arguments as JSON.
func editable(call *harnessv1.PendingCall) string {
	if command, _ := commandOf(call); isText(call) {
		return command + "\n"
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(call.GetArguments().GetInline()), "", "  ") != nil {
		return call.GetArguments().GetInline()
	}
	return b.String() + "\n"
}

// edited returns the arguments of a call after its editable text was changed.
func edited(call *harnessv1.PendingCall, text string) (string, error) {
	if isText(call) {
		var given map[string]json.RawMessage
		if err := json.Unmarshal([]byte(call.GetArguments().GetInline()), &given); err != nil {
			return "", fmt.Errorf("the arguments of the call: %w", err)
		}
		command := strings.TrimRight(text, "\n")
		if strings.TrimSpace(command) == "" {
			return "", errors.New("the command is empty: deny the call with [n]")
		}
		given["command"] = encode(command)
		return string(encode(given)), nil
	}
	return Object(text)
}

// Object returns a JSON object of a user without the white space around it. A syntax error has
// its line.
func Object(text string) (string, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			line := 1 + strings.Count(text[:min(int(at.Offset), len(text))], "\n")
			return "", fmt.Errorf("the arguments are not JSON: line %d: %w", line, err)
		}
		return "", errors.New("the arguments are not a JSON object")
	}
	if given == nil {
		return "", errors.New("the arguments are not a JSON object")
	}
	return strings.TrimSpace(text), nil
}

// encode returns a value as JSON that keeps <, > and &.
func encode(value any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // texts and JSON always encode
	return bytes.TrimSpace(b.Bytes())
}
