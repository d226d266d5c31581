package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// conclusion is how the server has ended a response.
type conclusion struct {
	// reason is the finish reason in the server's words.
	reason string
	// refusal is the category of a refusal; empty if the response is none.
	refusal string
}

const (
	reasonFilter = "content_filter"
	reasonLength = "length"
)

// The finish reasons of compatible servers, in lower case.
var (
	// filterReasons are those of a refusal: sensitive is Z.ai's, content_filtered and
	// guardrail_intervened are Bedrock's, the rest are Gemini's and Claude's, all through
	// gateways that do not translate them.
	filterReasons = []string{
		reasonFilter, "content_filtered", "sensitive", "guardrail_intervened", "refusal", "safety", "prohibited_content",
		"blocklist", "spii", "recitation", "image_safety",
	}
	// cutReasons are those of a response that the server could not finish: DeepSeek's,
	// Z.ai's, Mistral's and OpenRouter's, and vLLM's.
	cutReasons = []string{"insufficient_system_resource", "network_error", "error", "abort", "aborted"}
	// lengthReasons are those of a response that reached its limit; model_length is
	// Mistral's.
	lengthReasons = []string{reasonLength, "max_tokens", "max_output_tokens", "model_length"}
)

// reasonContext is Z.ai's finish reason of a request that exceeds the context window.
const reasonContext = "model_context_window_exceeded"

// readEnding reads a finish reason. A response that the server could not finish is an
// error, which a further try may not meet.
func readEnding(reason string, filters json.RawMessage) (conclusion, error) {
	word := strings.ToLower(reason)
	switch {
	case slices.Contains(cutReasons, word):
		return conclusion{}, adapter.Cut("the provider did not finish the response: "+adapter.Clean(reason), nil)
	case word == reasonContext:
		return conclusion{}, &model.Error{RetryAfter: -1, ContextExceeded: true, Message: "the request exceeds the model's context window: " + reason}
	case slices.Contains(filterReasons, word) || strings.HasPrefix(word, reasonFilter):
		return conclusion{reason: reason, refusal: category(adapter.Clean(reason), filters)}, nil
	}
	return conclusion{reason: reason}, nil
}

// category returns a category with the names of the filters that have matched.
func category(name string, filters json.RawMessage) string {
	var results map[string]json.RawMessage
	if json.Unmarshal(filters, &results) != nil {
		return name
	}
	var matched []string
	for filter, result := range results {
		var r struct {
			Filtered bool `json:"filtered"`
		}
		if json.Unmarshal(result, &r) == nil && r.Filtered {
			matched = append(matched, filter)
		}
	}
	if len(matched) == 0 {
		return name
	}
	slices.Sort(matched)
	return adapter.Clean(name + ": " + strings.Join(matched, ", "))
}

// finishReason returns the reason as the loop names it.
func (e conclusion) finishReason(calls []*harnessv1.ToolCall) string {
	switch word := strings.ToLower(e.reason); {
	case e.refusal != "":
		return reasonFilter
	case slices.Contains(lengthReasons, word):
		return reasonLength
	case word == "stop" || word == "tool_calls":
		return word
	}
	return adapter.FinishReason(calls)
}

// filterCodes are the codes of requests that a filter of the service has refused: those
// of Azure, of OpenAI, and of Alibaba.
var filterCodes = []string{reasonFilter, "content_policy_violation", "data_inspection_failed", "DataInspectionFailed"}

// filtered returns the category of a request that a filter of the service has refused;
// empty for other errors. Azure names the filters that have matched.
func filtered(body []byte) string {
	var top struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &top) != nil {
		return ""
	}
	fault := body
	if len(top.Error) > 0 && top.Error[0] == '{' {
		fault = top.Error
	}
	var e struct {
		Code  json.RawMessage `json:"code"`
		Type  json.RawMessage `json:"type"`
		Inner struct {
			Result json.RawMessage `json:"content_filter_result"`
		} `json:"innererror"`
	}
	if json.Unmarshal(fault, &e) != nil {
		return ""
	}
	for _, code := range []string{text(e.Code), text(e.Type)} {
		if slices.Contains(filterCodes, code) {
			return category(code, e.Inner.Result)
		}
	}
	return ""
}

// badRequest reports whether a status blames the request.
func badRequest(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
}
