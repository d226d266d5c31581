package modeltest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxResponsesCallID is the length from which the Responses protocol refuses the id of a
// call.
const maxResponsesCallID = 64

// responsesItems walks through the items of a request.
type responsesItems struct {
	request *Request
	called  []string        // the ids of the calls, in order
	results map[string]bool // whether a call has its result
	before  map[string]bool // the ids of the reasoning so far
	reason  *reasoningItem  // reasoning that waits for what it led to
	answer  bool            // the last message is an answer that the next item may continue
}

// reasoningItem is reasoning that comes back.
type reasoningItem struct {
	id  string
	led string // the type of what it led to
}

func (r *Request) responsesInput(o object) error {
	var list []object
	if _, ok := o["input"]; !ok {
		return invalid("input", "Missing required parameter: 'input'.")
	}
	if err := o.member("", "input", "an array of input items", &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return invalid("input", "Invalid 'input': empty array. Expected an array with minimum length 1.")
	}
	items := &responsesItems{request: r, results: map[string]bool{}, before: map[string]bool{}}
	for i, o := range list {
		if err := items.add(o, fmt.Sprintf("input[%d].", i)); err != nil {
			return err
		}
	}
	return items.end()
}

func (s *responsesItems) add(o object, at string) error {
	var kind string
	if err := o.required(at, "type", &kind); err != nil {
		return err
	}
	var role string
	if kind == "message" {
		if err := o.required(at, "role", &role); err != nil {
			return err
		}
	}
	if s.reason != nil && kind != "reasoning" && (kind != s.reason.led || kind == "message" && role != "assistant") {
		return s.reason.alone()
	}
	switch {
	case kind == "message" && role == "assistant":
		return s.text(o, at)
	case kind == "message":
		s.answer = false
		return s.message(o, at, role)
	case kind == "function_call":
		return s.call(o, at)
	case kind == "function_call_output":
		s.answer = false
		return s.result(o, at)
	case kind == "reasoning":
		return s.reasoning(o, at)
	}
	return invalid(at+"type", "Invalid value: '%s'. Supported values of '%stype' are: 'message', 'function_call', 'function_call_output' and 'reasoning'.", kind, at)
}

// alone is the refusal of reasoning that nothing, or something else, follows.
func (r *reasoningItem) alone() error {
	return invalid("input", "Item '%s' of type 'reasoning' was provided without its required following item.", r.id)
}

func (s *responsesItems) end() error {
	if s.reason != nil {
		return s.reason.alone()
	}
	for _, id := range s.called {
		if !s.results[id] {
			return invalid("input", "No tool output found for function call %s.", id)
		}
	}
	return nil
}

// assistant returns the answer that an item is part of.
func (s *responsesItems) assistant() *RequestMessage {
	if !s.answer {
		s.request.Messages = append(s.request.Messages, RequestMessage{Role: "assistant"})
	}
	s.answer, s.reason = true, nil
	return &s.request.Messages[len(s.request.Messages)-1]
}

// identified refuses an item with an id whose reasoning is missing.
func (s *responsesItems) identified(o object, at, kind string) error {
	var id string
	if err := o.member(at, "id", "a string", &id); err != nil {
		return err
	}
	if _, needs, ok := strings.Cut(id, "."); ok && !s.before[needs] {
		return invalid("input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, kind, needs)
	}
	return nil
}

func (s *responsesItems) text(o object, at string) error {
	if err := o.known(at, "type", "role", "content", "phase", "id", "status"); err != nil {
		return err
	}
	if err := s.identified(o, at, "message"); err != nil {
		return err
	}
	var phase string
	if err := o.member(at, "phase", "a string", &phase); err != nil {
		return err
	}
	if !slices.Contains([]string{"", "commentary", "final_answer"}, phase) {
		return invalid(at+"phase", "Invalid value: '%s'. Supported values of '%sphase' are: 'commentary' and 'final_answer'.", phase, at)
	}
	text, _, err := o.contents(at, "content", "output_text")
	if err != nil {
		return err
	}
	m := s.assistant()
	m.Content, m.HasContent = m.Content+text, true
	s.request.responses.texts = append(s.request.responses.texts, returnedText{text, phase})
	return nil
}

func (s *responsesItems) message(o object, at, role string) error {
	if err := o.known(at, "type", "role", "content", "status"); err != nil {
		return err
	}
	if !slices.Contains([]string{"user", "system", "developer"}, role) {
		return invalid(at+"role", "Invalid value: '%s'. Supported values of '%srole' are: 'assistant', 'system', 'developer', and 'user'.", role, at)
	}
	text, media, err := o.contents(at, "content", "input_text", "input_image", "input_file")
	if err != nil {
		return err
	}
	s.request.Messages = append(s.request.Messages, RequestMessage{Role: role, Content: text, HasContent: true, Media: media})
	return nil
}

func (s *responsesItems) call(o object, at string) error {
	if err := o.known(at, "type", "call_id", "name", "arguments", "id", "status"); err != nil {
		return err
	}
	var c Call
	if err := o.callID(at, &c.ID); err != nil {
		return err
	}
	if err := s.identified(o, at, "function_call"); err != nil {
		return err
	}
	if err := o.required(at, "name", &c.Name); err != nil {
		return err
	}
	if !functionName.MatchString(c.Name) {
		return invalid(at+"name", "Invalid '%sname': string does not match pattern. Expected a string that matches the pattern '%s'.", at, functionName)
	}
	if _, ok := o["arguments"]; !ok {
		return invalid(at+"arguments", "Missing required parameter: '%sarguments'.", at)
	}
	if err := o.member(at, "arguments", "a string", &c.Arguments); err != nil {
		return err
	}
	if slices.Contains(s.called, c.ID) {
		return invalid("input", "Duplicate function call with call_id %s.", c.ID)
	}
	s.called = append(s.called, c.ID)
	m := s.assistant()
	m.ToolCalls = append(m.ToolCalls, c)
	return nil
}

func (o object) callID(at string, into *string) error {
	if err := o.required(at, "call_id", into); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(*into); n > maxResponsesCallID {
		return &responsesError{status: http.StatusBadRequest, code: "string_above_max_length", param: at + "call_id", message: fmt.Sprintf(
			"Invalid '%scall_id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxResponsesCallID, n)}
	}
	return nil
}

func (s *responsesItems) result(o object, at string) error {
	if err := o.known(at, "type", "call_id", "output", "id", "status"); err != nil {
		return err
	}
	m := RequestMessage{Role: "tool", HasContent: true}
	if err := o.callID(at, &m.ToolCallID); err != nil {
		return err
	}
	if !slices.Contains(s.called, m.ToolCallID) || s.results[m.ToolCallID] {
		return invalid("input", "No tool call found for function call output with call_id %s.", m.ToolCallID)
	}
	s.results[m.ToolCallID] = true
	text, media, err := o.contents(at, "output", "input_text", "input_image", "input_file")
	if err != nil {
		return err
	}
	m.Content, m.Media = text, media
	s.request.Messages = append(s.request.Messages, m)
	return nil
}

// reasoning takes reasoning that a server made: all that it needs to know is in the
// encrypted content.
func (s *responsesItems) reasoning(o object, at string) error {
	if err := o.known(at, "type", "id", "summary", "content", "encrypted_content", "status"); err != nil {
		return err
	}
	var id, encrypted string
	if err := o.member(at, "id", "a string", &id); err != nil {
		return err
	}
	var summary []object
	if _, ok := o["summary"]; !ok {
		return invalid(at+"summary", "Missing required parameter: '%ssummary'.", at)
	}
	if err := o.member(at, "summary", "an array of objects", &summary); err != nil {
		return err
	}
	if raw := o["encrypted_content"]; len(raw) == 0 || string(raw) == "null" {
		return &responsesError{status: http.StatusNotFound, param: "input", message: fmt.Sprintf(
			"Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", id)}
	}
	if err := o.member(at, "encrypted_content", "a string", &encrypted); err != nil {
		return err
	}
	made, ok := decrypt(encrypted)
	if !ok || id != "" && id != made.Item {
		return unverified(id, "Encrypted content could not be decrypted or parsed.")
	}
	s.request.responses.seals = append(s.request.responses.seals, made)
	s.request.responses.sealed += len(encrypted)
	s.before[made.Item] = true
	s.reason = &reasoningItem{id: made.Item, led: made.Led}
	return nil
}

// unverified is the refusal of encrypted content.
func unverified(id, reason string) error {
	return &responsesError{status: http.StatusBadRequest, code: "invalid_encrypted_content", message: fmt.Sprintf(
		"The encrypted content for item %s could not be verified. Reason: %s", id, reason)}
}
