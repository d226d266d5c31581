package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// maxMessage is the length of a message in bytes.
const maxMessage = 400

// statusError is an answer with a status of 400 or more.
type statusError struct {
	code   int
	header http.Header
	body   []byte
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.code) }

// statusOr is the refusal that res holds, or err where there was none. The SDK
// loses the status of a refusal whose body is not JSON; the response has it.
func statusOr(res *http.Response, err error) error {
	if res == nil || res.StatusCode < 400 {
		return err
	}
	body, readErr := io.ReadAll(res.Body)
	if readErr != nil {
		body = nil // the status says enough
	}
	return &statusError{code: res.StatusCode, header: res.Header, body: body}
}

// cut is a try that broke off.
func cut(what string, cause error) *model.Error {
	return &model.Error{Retryable: true, RetryAfter: -1, Message: what, Err: cause}
}

// fail turns whatever ended a try into a *model.Error. parent is the caller's
// context, try the one that the watch may have cancelled.
func (p *Provider) fail(parent, try context.Context, limit time.Duration, err error) *model.Error {
	if parent.Err() != nil {
		return &model.Error{RetryAfter: -1, Message: "the model call was broken off: " + parent.Err().Error(), Err: parent.Err()}
	}
	if errors.Is(context.Cause(try), errSilent) {
		return cut(fmt.Sprintf("%s sent nothing for %s", p.host, limit), errSilent)
	}
	var failed *model.Error
	var status *statusError
	var unreachable *url.Error
	switch {
	case errors.As(err, &failed):
	case errors.As(err, &status):
		failed = classify(status.code, status.header, status.body, time.Now())
	case errors.As(err, &unreachable):
		failed = cut(fmt.Sprintf("cannot reach %s: %v", p.host, unreachable.Err), unreachable.Err)
	default:
		failed = cut(fmt.Sprintf("the answer of %s cannot be read: %v", p.host, err), nil)
	}
	failed.Message = clean(failed.Message, p.key)
	return failed
}

// classify decides what a refusal means. now serves to read an HTTP date.
func classify(status int, header http.Header, body []byte, now time.Time) *model.Error {
	code, said := errorText(body)
	e := &model.Error{Status: status, RetryAfter: retryAfter(header, now), Retryable: model.RetryableStatus(status)}
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
	e := cut("the provider reported an error in its answer", nil)
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

// retryAfter reads retry-after-ms (the service's own, milliseconds) and
// Retry-After (RFC 9110: seconds or an HTTP date; fractions are taken too).
// Negative means that the provider did not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return duration(s, time.Second)
	}
	if date, err := http.ParseTime(v); err == nil {
		return max(date.Sub(now), 0)
	}
	return -1
}

// duration is n units, at most a day; a number that makes no sense says nothing.
func duration(n float64, unit time.Duration) time.Duration {
	if !(n >= 0) {
		return -1
	}
	const day = 24 * time.Hour
	if n > float64(day/unit) {
		return day
	}
	return time.Duration(n * float64(unit))
}

// clean makes a message one short line without the key. Services quote a part
// of a wrong key; that part is not the key, and 401 and 403 quote nothing.
func clean(message, key string) string {
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, "")), " ")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
