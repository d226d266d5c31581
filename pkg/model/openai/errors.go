package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/attempt"
)

// classify decides what a refusal means.
func classify(refused *attempt.StatusError) *model.Error {
	status := refused.Code
	code, said := errorText(refused.Body)
	e := &model.Error{Status: status, RetryAfter: attempt.RetryAfter(refused.Header, time.Now()), Retryable: model.RetryableStatus(status)}
	switch {
	case contextExceeded(status, code, said):
		e.Retryable, e.ContextExceeded = false, true
		e.Message = "the request is longer than the model's context window: " + said
	case status == http.StatusUnauthorized:
		e.Message = "the provider refused the API key (401): check OPENAI_API_KEY"
	case status == http.StatusForbidden:
		e.Message = "the provider denies access with this API key (403): check what the key may use, and OPENAI_BASE_URL"
	case status == http.StatusNotFound:
		e.Message = "the provider does not know the model or the address (404): check the model's name, and that OPENAI_BASE_URL includes /v1"
		if said != "" {
			e.Message += ": " + said
		}
	case said != "":
		e.Message = fmt.Sprintf("the provider answered %d: %s", status, said)
	default:
		e.Message = strings.TrimSpace(fmt.Sprintf("the provider answered %d %s", status, http.StatusText(status)))
	}
	return e
}

// contextExceeded knows the service's code, and the sentences of compatible
// servers (vLLM, llama.cpp, LM Studio and gateways before other models).
func contextExceeded(status int, code, said string) bool {
	if code == "context_length_exceeded" || code == "exceed_context_size_error" {
		return true
	}
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge && status != http.StatusUnprocessableEntity {
		return false
	}
	said = strings.ToLower(said)
	for _, s := range []string{
		"maximum context length", "context_length_exceeded", "context length exceeded", "exceeds the context",
		"exceeds the available context", "exceed context", "context window", "prompt is too long", "input is too long", "context size has been exceeded",
	} {
		if strings.Contains(said, s) {
			return true
		}
	}
	return false
}

// errorText is the code and the message in an error body of any of the forms
// that compatible servers use; a body that is not JSON has neither.
func errorText(body []byte) (code, message string) {
	var o struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(body, &o) != nil {
		return "", ""
	}
	var e struct {
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Message json.RawMessage `json:"message"`
	}
	switch {
	case len(o.Error) == 0 || string(o.Error) == "null":
		if code, message = scalar(o.Code), scalar(o.Message); message == "" {
			message = scalar(o.Detail)
		}
	case json.Unmarshal(o.Error, &e) == nil:
		if code = scalar(e.Code); code == "" || isNumber(code) && scalar(e.Type) == "exceed_context_size_error" {
			code = scalar(e.Type)
		}
		message = scalar(e.Message)
	default:
		message = scalar(o.Error)
	}
	return code, message
}

// errorObject is the failure in an answer that came with status 200: an error
// object instead of a chunk or a completion. nil if there is none.
func errorObject(data []byte) error {
	var o struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &o) != nil || len(o.Error) == 0 || string(o.Error) == "null" {
		return nil
	}
	return reportedError(data)
}

// reportedError is an error in mid-stream. It counts as a cut stream whatever
// it says, unless it says that the request is too long.
func reportedError(data []byte) *model.Error {
	code, said := errorText(data)
	e := attempt.Cut("the provider reported an error in its answer", nil)
	if said != "" {
		e.Message += ": " + said
	}
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
		e.Status = status
	}
	if contextExceeded(max(e.Status, http.StatusBadRequest), code, said) {
		e.Retryable, e.ContextExceeded = false, true
	}
	return e
}

func scalar(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}
