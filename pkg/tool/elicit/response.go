package elicit

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// Done is the answer to a request to visit an address.
const Done = "done"

// Action returns what an answer does.
func Action(a *harnessv1.ToolAnswer) harnessv1.AnswerAction {
	switch {
	case a.GetAction() != harnessv1.AnswerAction_ANSWER_ACTION_UNSPECIFIED:
		return a.GetAction()
	case a.GetIsError():
		return harnessv1.AnswerAction_ANSWER_ACTION_DECLINE
	}
	return harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT
}

// All returns the same action for each request of a question.
func All(q *harnessv1.ServerQuestion, action harnessv1.AnswerAction) []*harnessv1.ServerResponse {
	var responses []*harnessv1.ServerResponse
	for _, r := range q.GetRequests() {
		responses = append(responses, &harnessv1.ServerResponse{RequestId: r.GetId(), Action: action})
	}
	return responses
}

// Responses returns what an answer with a text says to each request of a question. The error
// names the field of the answer that does not fit.
//
// The text that accepts a form is a JSON object with its values. A form with one field takes the
// value alone. The text that accepts an address is done, or empty. The text that answers several
// requests is a JSON object with such an answer by the id of each; null declines that request.
func Responses(q *harnessv1.ServerQuestion, a *harnessv1.ToolAnswer, text string) ([]*harnessv1.ServerResponse, error) {
	switch action := Action(a); action {
	case harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT:
	case harnessv1.AnswerAction_ANSWER_ACTION_DECLINE, harnessv1.AnswerAction_ANSWER_ACTION_CANCEL:
		return All(q, action), nil
	default:
		return nil, fault.Invalid("action", "must be ACCEPT, DECLINE or CANCEL")
	}
	if a.GetIsError() {
		return nil, fault.Invalid("is_error", "must be unset in an answer that accepts")
	}
	if len(a.GetMedia()) > 0 {
		return nil, fault.Invalid("media", "the question of a server takes no files")
	}
	if len(q.GetRequests()) == 1 {
		r, err := accept(q.GetRequests()[0], text)
		if err != nil {
			return nil, fault.Invalid("result", "%v", err)
		}
		return []*harnessv1.ServerResponse{r}, nil
	}
	given, ok := object(text)
	if !ok {
		return nil, fault.Invalid("result", "must be a JSON object with an answer for each of %s", strings.Join(ids(q), ", "))
	}
	var responses []*harnessv1.ServerResponse
	for _, r := range q.GetRequests() {
		raw, ok := given[r.GetId()]
		if !ok {
			return nil, fault.Invalid("result", "%s: missing; null declines it", r.GetId())
		}
		delete(given, r.GetId())
		if string(raw) == "null" {
			responses = append(responses, &harnessv1.ServerResponse{RequestId: r.GetId(), Action: harnessv1.AnswerAction_ANSWER_ACTION_DECLINE})
			continue
		}
		response, err := accept(r, plain(raw))
		if err != nil {
			return nil, fault.Invalid("result", "%s: %v", r.GetId(), err)
		}
		responses = append(responses, response)
	}
	for _, id := range slices.Sorted(maps.Keys(given)) {
		return nil, fault.Invalid("result", "%s: the server asks no such thing, only %s", content.Clip(id, 80), strings.Join(ids(q), ", "))
	}
	return responses, nil
}

func ids(q *harnessv1.ServerQuestion) (ids []string) {
	for _, r := range q.GetRequests() {
		ids = append(ids, r.GetId())
	}
	return ids
}

// plain returns the text that a JSON text has, and other JSON unchanged.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func accept(r *harnessv1.ServerRequest, text string) (*harnessv1.ServerResponse, error) {
	response := &harnessv1.ServerResponse{RequestId: r.GetId(), Action: harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT}
	if r.Url != nil {
		if text = strings.TrimSpace(text); text != "" && !strings.EqualFold(text, Done) {
			return nil, errors.New("must be done, once the address was visited, or an answer that declines")
		}
		return response, nil
	}
	values, err := valuesOf(r.GetSchema().GetInline(), text)
	if err != nil {
		return nil, err
	}
	response.Content = content.Inline(values)
	return response, nil
}

// valuesOf returns the values of a form, a JSON object, that a text gives. Fields without a value have
// their defaults, if these fit.
func valuesOf(form, text string) (string, error) {
	fields, err := Fields(form)
	if err != nil {
		return "", err
	}
	if _, ok := object(text); !ok {
		if text, err = single(fields, text); err != nil {
			return "", err
		}
	}
	compiled, err := schema.Compile(form, true)
	if err != nil {
		return "", err
	}
	value, err := schema.Decode(text)
	if err != nil {
		return "", err
	}
	values := value.(map[string]any)
	for name := range values {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			return "", errors.New(content.Clip(name, 80) + ": the form has no such field, only " + names(fields))
		}
	}
	whole, ok := withDefaults(form, fields, values)
	if !ok {
		return text, compiled.Validate(values, 240)
	}
	data, err := json.Marshal(whole)
	if err != nil {
		return "", err
	}
	return string(data), compiled.Validate(whole, 240)
}

// withDefaults returns values with those of the fields that have a default which fits, and no value;
// !ok if there is no such field.
func withDefaults(form string, fields []Field, values map[string]any) (whole map[string]any, ok bool) {
	var parts struct{ Properties map[string]json.RawMessage }
	if json.Unmarshal([]byte(form), &parts) != nil {
		return values, false
	}
	whole = maps.Clone(values)
	for _, f := range fields {
		if _, given := values[f.Name]; given || f.Default == "" {
			continue
		}
		value, err := schema.Decode(f.Default)
		if err != nil {
			continue
		}
		if field, err := schema.Compile(string(parts.Properties[f.Name]), false); err != nil || field.Validate(value, 240) != nil {
			continue
		}
		whole[f.Name], ok = value, true
	}
	return whole, ok
}

func names(fields []Field) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name
	}
	return strings.Join(all, ", ")
}

// single returns the values of a form that has one field, or needs one, or has none.
func single(fields []Field, text string) (string, error) {
	needed := slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return !f.Required })
	switch {
	case len(fields) == 1:
	case len(needed) == 1:
		fields = needed
	case len(fields) == 0:
		if text = strings.TrimSpace(text); text != "" && !strings.EqualFold(text, Done) {
			return "", errors.New("must be {}, because the form has no fields, or an answer that declines")
		}
		return "{}", nil
	default:
		return "", errors.New("must be a JSON object with values for " + names(fields))
	}
	value, err := Value(fields[0], text)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]json.RawMessage{fields[0].Name: value})
	return string(data), err
}

// Value returns the JSON value that a person gives a field by a text. A choice is named by its
// value or its title; several ones are divided by commas.
func Value(f Field, text string) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	wrong := func(expected string) (json.RawMessage, error) {
		return nil, errors.New(f.Name + ": must be " + expected + ", not " + strconv.Quote(content.Clip(text, 80)))
	}
	switch f.Type {
	case Integer, Number:
		if n := json.Number(trimmed); n != "" && json.Valid([]byte(trimmed)) {
			if _, err := n.Float64(); err == nil {
				return json.RawMessage(trimmed), nil
			}
		}
		return wrong("a number")
	case Boolean:
		switch strings.ToLower(trimmed) {
		case "true", "yes", "y":
			return json.RawMessage("true"), nil
		case "false", "no", "n":
			return json.RawMessage("false"), nil
		}
		return wrong("yes or no")
	case List:
		chosen := []string{}
		for part := range strings.SplitSeq(trimmed, ",") {
			if part = strings.TrimSpace(part); part != "" {
				chosen = append(chosen, f.choose(part))
			}
		}
		return json.Marshal(chosen)
	}
	if f.Options != nil {
		text = f.choose(trimmed)
	}
	return json.Marshal(text)
}

// choose returns the option with a value or a title; a text that names none unchanged.
func (f Field) choose(text string) string {
	for _, o := range f.Options {
		if o.Value == text {
			return o.Value
		}
	}
	for _, o := range f.Options {
		if strings.EqualFold(o.Title, text) || strings.EqualFold(o.Value, text) {
			return o.Value
		}
	}
	return text
}

// object returns the members of a JSON object; !ok if the text is none, or names one twice.
func object(text string) (members map[string]json.RawMessage, ok bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, false
	}
	members = map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		key, _ := name.(string)
		if _, twice := members[key]; twice || decoder.Decode(&value) != nil {
			return nil, false
		}
		members[key] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, false
	}
	_, err := decoder.Token()
	return members, errors.Is(err, io.EOF)
}
