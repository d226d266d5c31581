package openai

import (
	"net/http"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// refusals classifies the errors of the service and of compatible servers.
var refusals = adapter.Refusals{
	BaseHint: "includes /v1",
	// The first two are OpenAI's, the third is Moonshot's.
	QuotaCodes: []string{"insufficient_quota", "credit_balance_exhausted", "exceeded_current_quota_error"},
	Filtered:   filtered,
	Adjust:     adjust,
}

// responsesPhrases are in the text of a refusal that asks for the other wire: "To use function
// tools, use /v1/responses or set reasoning_effort to 'none'.", "This model is only supported in
// v1/responses and not in v1/chat/completions.", "This is not a chat model and thus not supported
// in the v1/chat/completions endpoint."
var responsesPhrases = []string{"v1/responses", "not a chat model"}

// adjust returns how a request that was refused must change.
func adjust(status int, fault wire.Fault) harnessv1.Adjustment {
	message := strings.ToLower(fault.Message)
	switch {
	case (status == http.StatusBadRequest || status == http.StatusNotFound) && has(message, responsesPhrases):
		return harnessv1.Adjustment_ADJUSTMENT_WIRE_RESPONSES
	case badRequest(status) && blamesReasoning(message):
		return harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
	}
	return harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
}

// What a refusal says of the reasoning in a request.
var (
	// signatures are words of Gemini, and of others through gateways: "Function call is
	// missing a thought_signature", "Corrupted thought signature", "The encrypted content
	// for item rs_… could not be verified", "Duplicate item found with id rs_…", "Item 'rs_…' of
	// type 'reasoning' was provided without its required following item".
	signatures = []string{
		"thought_signature", "thought signature", "encrypted content", "invalid_encrypted_content",
		"duplicate item found with id rs_", "of type 'reasoning' was provided without",
	}
	// members name only reasoning that has gone back, and messageMembers only if the text
	// is about messages.
	members        = []string{memberContent, memberDetails}
	messageMembers = []string{"'reasoning'", "\"reasoning\"", "`reasoning`", ".reasoning:", "thinking"}
	// complaints are those of DeepSeek and Moonshot (missing, must be passed back),
	// Mistral (extra_forbidden), Groq (unsupported) and of others.
	complaints = []string{
		"missing", "must be passed back", "extra_forbidden", "not permitted", "unsupported", "not supported", "unknown",
		"unrecognized", "unexpected", "not allowed", "empty", "invalid", "cannot be modified",
	}
)

// blamesReasoning reports whether a message blames reasoning that has gone back, or that
// is missing.
func blamesReasoning(message string) bool {
	named := has(message, members) || strings.Contains(message, "messages") && has(message, messageMembers)
	return has(message, signatures) || named && has(message, complaints)
}

// has reports whether a message contains one of the words.
func has(message string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(message, word) })
}
