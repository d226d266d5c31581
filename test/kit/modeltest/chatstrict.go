package modeltest

import (
	"fmt"
	"net/http"
	"regexp"
)

var shortCallID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// The codes of Mistral's refusals (mistralai/mistral-common, validator.py has the rules).
const (
	codeOrder  = "3230"
	codeCallID = "3280"
)

// checkStrict checks the order of messages and the ids of calls as far as the temper does.
func (t *Temper) checkStrict(messages []RequestMessage) error {
	for i, m := range messages {
		if t.NoUserAfterResults && i > 0 && messages[i-1].Role == "tool" && m.Role != "tool" && m.Role != "assistant" {
			return t.strict("invalid_request_message_order", codeOrder, fmt.Sprintf("Unexpected role '%s' after role 'tool'", m.Role))
		}
		if !t.ShortCallIDs {
			continue
		}
		ids := []string{}
		if m.Role == "tool" {
			ids = append(ids, m.ToolCallID)
		}
		for _, c := range m.ToolCalls {
			ids = append(ids, c.ID)
		}
		for _, id := range ids {
			if !shortCallID.MatchString(id) {
				return t.strict("invalid_function_call", codeCallID, fmt.Sprintf("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", id))
			}
		}
	}
	return nil
}

// strict is a refusal of checkStrict.
func (t *Temper) strict(kind, code, message string) error {
	if t.Words != WordsMistral {
		return t.refuse("invalid_request", "%s", message)
	}
	return &refusal{status: http.StatusBadRequest, message: message, body: mustJSON(map[string]any{
		"object": "error", "message": message, "type": kind, "param": nil, "code": code, "raw_status_code": http.StatusBadRequest,
	})}
}
