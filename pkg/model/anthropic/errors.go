package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/attempt"
)

// overloaded is the service's own status for a service that is too busy.
const overloaded = 529

// classify decides what a refusal means.
func classify(refused *attempt.StatusError) *model.Error {
	status := refused.Code
	kind, said := errorText(refused.Body)
	e := &model.Error{Status: status, RetryAfter: attempt.RetryAfter(refused.Header, time.Now()), Retryable: model.RetryableStatus(status)}
	switch {
	case contextExceeded(status, kind, said):
		e.Retryable, e.ContextExceeded = false, true
		e.Message = "the request is longer than the model's context window: " + said
	case status == http.StatusUnauthorized:
		e.Message = "the provider refused the API key (401): check ANTHROPIC_API_KEY"
	case status == http.StatusForbidden:
		e.Message = "the provider denies access with this API key (403): check what the key may use, and ANTHROPIC_BASE_URL"
	case status == http.StatusNotFound:
		e.Message = "the provider does not know the model or the address (404): check the model's name, and that ANTHROPIC_BASE_URL does not include /v1"
		if said != "" {
			e.Message += ": " + said
		}
	case said != "":
		e.Message = fmt.Sprintf("the provider answered %d: %s", status, said)
	case status == overloaded:
		e.Message = "the provider answered 529: it is overloaded"
	default:
		e.Message = strings.TrimSpace(fmt.Sprintf("the provider answered %d %s", status, http.StatusText(status)))
	}
	return e
}

// contextExceeded knows the service's sentences and the kind of a body that is
// too large to be read at all, and the sentences of compatible servers.
func contextExceeded(status int, kind, said string) bool {
	if kind == "request_too_large" {
		return true
	}
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
		return false
	}
	said = strings.ToLower(said)
	for _, s := range []string{
		"prompt is too long", "exceed context limit", "exceeds the context", "context window", "maximum context length", "context length exceeded", "input is too long",
	} {
		if strings.Contains(said, s) {
			return true
		}
	}
	return false
}

// errorText is the kind and the message in an error body; a body of another form
// has what can be found in it.
func errorText(body []byte) (kind, message string) {
	var o struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &o) != nil {
		return "", ""
	}
	var e struct {
		Type    json.RawMessage `json:"type"`
		Message json.RawMessage `json:"message"`
	}
	switch {
	case absent(o.Error):
		if message = scalar(o.Message); message == "" {
			message = scalar(o.Detail)
		}
	case json.Unmarshal(o.Error, &e) == nil:
		kind, message = scalar(e.Type), scalar(e.Message)
	default:
		message = scalar(o.Error)
	}
	return kind, message
}

// reportedError is an error in mid-stream, or in place of a message. It counts as a
// cut stream whatever it says, unless it says that the request is too long.
func reportedError(data []byte) *model.Error {
	kind, said := errorText(data)
	e := attempt.Cut("the provider reported an error in its answer", nil)
	switch {
	case said != "":
		e.Message += ": " + said
	case kind != "":
		e.Message += ": " + kind
	}
	if contextExceeded(http.StatusBadRequest, kind, said) {
		e.Retryable, e.ContextExceeded = false, true
	}
	return e
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// scalar is the text of a member that should be a string.
func scalar(raw json.RawMessage) string {
	if absent(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
