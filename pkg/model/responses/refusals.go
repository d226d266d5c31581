package responses

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// refusals classifies the errors of the service and of compatible servers.
func (c *Config) refusals() adapter.Refusals {
	return adapter.Refusals{
		KeyVariable: c.KeyVariable, BaseVariable: c.BaseVariable, BaseHint: "includes /v1",
		QuotaCodes: []string{"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active"},
		Adjust:     adjust(c.Own),
	}
}

// opaquePhrases are parts of the messages, in lower case, with which services refuse
// reasoning or a phase that goes back: OpenAI's, of which the last line is about
// members of items that the client did not write, then xAI's.
var opaquePhrases = []string{
	"could not be verified", "item with id 'rs_", "was provided without its required 'reasoning' item", "without its required following item",
	"without its required preceding item", "duplicate item found with id", "referenced reasoning item",
	"unknown parameter: 'input[", "expected an array with maximum length 0", "expected an id that begins with 'rs",
	"could not decrypt the provided encrypted_content", "could not decode the compaction blob",
}

// adjust returns how a refused request must change. own reports whether the address is
// the service's own.
func adjust(own bool) func(int, wire.Fault) harnessv1.Adjustment {
	return func(status int, fault wire.Fault) harnessv1.Adjustment {
		message := strings.ToLower(fault.Message)
		names := func(phrase string) bool { return strings.Contains(message, phrase) }
		switch {
		case fault.Code == "invalid_encrypted_content" || slices.ContainsFunc(opaquePhrases, names):
			return harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
		case status == http.StatusBadRequest && fault.Param == "reasoning.summary":
			return harnessv1.Adjustment_ADJUSTMENT_NO_SUMMARY
		case names("encrypted content is not supported"):
			return harnessv1.Adjustment_ADJUSTMENT_NO_ENCRYPTED
		case wantsChat(message), !own && noSuchPath(status, fault):
			return harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT
		}
		return harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
	}
}

// wantsChat reports whether a refusal sends the client to chat completions. Gateways
// that translate to chat completions pass on refusals that send it here.
func wantsChat(message string) bool {
	return strings.Contains(message, "v1/chat/completions") &&
		!strings.Contains(message, "only supported in v1/responses") && !strings.Contains(message, "use /v1/responses")
}

// noSuchPath reports whether a server does not know the path of a request, not the
// model.
func noSuchPath(status int, fault wire.Fault) bool {
	return status == http.StatusMethodNotAllowed ||
		status == http.StatusNotFound && fault.Code != "model_not_found" && fault.Param != "model"
}

// reported turns an error that came with status 200 into a *model.Error.
func (d *decoder) reported(data []byte) *model.Error {
	e, fault := d.refusals.Reported(data), wire.ParseFault(data)
	if permanent(fault) {
		e.Retryable = false
	}
	if e.Retryable && fault.Code == "rate_limit_exceeded" {
		e.RetryAfter = requestedWait(fault.Message)
	}
	return e
}

// permanent reports whether the same request fails again: it is invalid, or a policy
// of the service forbids it. Codes that are not known are temporary.
func permanent(fault wire.Fault) bool {
	switch fault.Code {
	case "rate_limit_exceeded", "server_error", "vector_store_timeout", "failed_to_download_image":
		return false
	case "data_residency_mismatch", "empty_image_file":
		return true
	}
	return fault.Type == "invalid_request_error" || strings.HasPrefix(fault.Code, "invalid_") ||
		strings.HasPrefix(fault.Code, "image_") || strings.HasPrefix(fault.Code, "unsupported_") || strings.Contains(fault.Code, "policy")
}

var waitPhrase = regexp.MustCompile(`(?i)try again in ((?:[0-9.]+ ?(?:ms|h|m|s))+)`)

// requestedWait returns the wait that a message requests, such as "Please try again in
// 1.5s.", at most a day; negative if it requests none. Errors within a stream have no
// headers.
func requestedWait(message string) time.Duration {
	found := waitPhrase.FindStringSubmatch(message)
	if found == nil {
		return -1
	}
	wait, err := time.ParseDuration(strings.ReplaceAll(found[1], " ", ""))
	if err != nil {
		return -1
	}
	return min(wait, 24*time.Hour)
}
