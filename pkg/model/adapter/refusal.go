package adapter

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// Refusals classifies the errors of a service and names what a person can check.
type Refusals struct {
	// KeyVariable and BaseVariable are the environment variables of the key and of
	// the base address.
	KeyVariable, BaseVariable string
	// BaseHint describes the base address, such as "includes /v1".
	BaseHint string
	// QuotaCodes are the codes and types of quotas that no waiting restores.
	QuotaCodes []string
	// QuotaPhrases are parts of a message that reports such a quota without a code and
	// without a wait, in lower case.
	QuotaPhrases []string
	// Filtered returns the category of a request that a filter of the service has refused;
	// empty for other errors. Nil: none.
	Filtered func(body []byte) string
	// Adjust returns how a request that was refused must change to succeed; unspecified
	// if no change is known. Nil: never.
	Adjust func(status int, fault wire.Fault) harnessv1.Adjustment
}

// statusOverloaded is what Anthropic and others answer when they are overloaded.
const statusOverloaded = 529

// Classify turns a refusal into a *model.Error.
func (r *Refusals) Classify(refused *wire.StatusError) *model.Error {
	status, fault := refused.Status, wire.ParseFault(refused.Body)
	e := &model.Error{Status: status, RetryAfter: wire.RetryAfter(refused.Header, time.Now()), Retryable: model.RetryableStatus(status)}
	if r.Adjust != nil {
		e.Adjustment = r.Adjust(status, fault)
	}
	size, long := tooLong(status, fault, refused.Body)
	switch {
	case long:
		exceed(e, size)
		e.Message = strings.TrimSuffix("the request exceeds the model's context window: "+fault.Message, ": ")
	case r.quotaExhausted(fault, e.RetryAfter):
		e.Retryable = false
		e.Message = fmt.Sprintf("the provider answered %d: the quota is used up: %s", status, fault.Message)
	case r.filtered(refused.Body) != "":
		e.Retryable = false
		e.Message = filteredMessage(r.filtered(refused.Body), fault)
	case status == http.StatusUnauthorized:
		e.Message = "the provider refused the API key (401): check " + r.KeyVariable
	case status == http.StatusForbidden:
		e.Message = "the provider denies access with this API key (403): check the permissions of the key, and " + r.BaseVariable
	case status == http.StatusNotFound:
		e.Message = fmt.Sprintf("the provider does not know the model or the address (404): check the model's name, and that %s %s", r.BaseVariable, r.BaseHint)
		if fault.Message != "" {
			e.Message += ": " + fault.Message
		}
	case fault.Message != "":
		e.Message = fmt.Sprintf("the provider answered %d: %s", status, fault.Message)
	case status == statusOverloaded:
		e.Message = "the provider answered 529: it is overloaded"
	default:
		e.Message = strings.TrimSpace(fmt.Sprintf("the provider answered %d %s", status, http.StatusText(status)))
	}
	return e
}

// unexplained reports whether a refusal of the request's content has no cause that is
// known.
func (r *Refusals) unexplained(refused *wire.StatusError) bool {
	if refused.Status != http.StatusBadRequest && refused.Status != http.StatusUnprocessableEntity {
		return false
	}
	fault := wire.ParseFault(refused.Body)
	_, long := tooLong(refused.Status, fault, refused.Body)
	return !long && !r.quotaExhausted(fault, wire.RetryAfter(refused.Header, time.Now())) && r.filtered(refused.Body) == ""
}

// quotaExhausted reports whether a quota is used up that no waiting restores.
func (r *Refusals) quotaExhausted(fault wire.Fault, wait time.Duration) bool {
	return slices.Contains(r.QuotaCodes, fault.Code) || slices.Contains(r.QuotaCodes, fault.Type) ||
		wait < 0 && containsAny(fault.Message, r.QuotaPhrases)
}

// filtered returns the category of a request that a filter has refused.
func (r *Refusals) filtered(body []byte) string {
	if r.Filtered == nil {
		return ""
	}
	return r.Filtered(body)
}

func filteredMessage(category string, fault wire.Fault) string {
	return fmt.Sprintf("the provider refused the request (%s): %s", category, fault.Message)
}

// Reported turns an error that came with status 200, in a stream or instead of
// a response, into a *model.Error. It is retryable whatever the service reports,
// unless the request exceeds the context window, the quota is used up, or a filter has
// refused the request.
func (r *Refusals) Reported(data []byte) *model.Error {
	fault := wire.ParseFault(data)
	e := Cut("the provider reported an error in its response", nil)
	switch {
	case fault.Message != "":
		e.Message += ": " + fault.Message
	case fault.Type != "":
		e.Message += ": " + fault.Type
	}
	if status, err := strconv.Atoi(fault.Code); err == nil && status >= 400 && status < 600 {
		e.Status = status
	}
	if size, long := tooLong(max(e.Status, http.StatusBadRequest), fault, data); long {
		exceed(e, size)
	}
	if r.quotaExhausted(fault, e.RetryAfter) {
		e.Retryable = false
	}
	if category := r.filtered(data); category != "" {
		e.Retryable, e.Message = false, filteredMessage(category, fault)
	}
	if r.Adjust != nil {
		e.Adjustment = r.Adjust(max(e.Status, http.StatusBadRequest), fault)
	}
	return e
}

// exceed makes e the error of a request that is too long.
func exceed(e *model.Error, size requestSize) {
	e.Retryable, e.ContextExceeded, e.PromptTokens, e.WindowTokens = false, true, size.prompt, size.window
}

// containsAny reports whether a message contains one of the phrases, which are in lower
// case.
func containsAny(message string, phrases []string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(message, phrase) })
}
