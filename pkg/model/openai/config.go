package openai

import (
	"encoding/json"
	"net/http"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Config is the server, how to reach it, and what it takes. The zero value is the
// service without a key.
type Config struct {
	// Name is the prefix of the provider's models and a part of its endpoint; default
	// openai.
	Name string
	// BaseURL includes the version path, such as http://127.0.0.1:8000/v1;
	// default DefaultBaseURL.
	BaseURL string
	// APIKey is sent in KeyHeader; empty sends none.
	APIKey string
	// KeyHeader is the header of the key. Empty: Authorization, with Bearer.
	KeyHeader string
	// Header is sent with each request, in addition to the key.
	Header http.Header
	// KeyVariable and BaseVariable are the environment variables of the key and of the
	// address, for the texts of errors; default OPENAI_API_KEY and OPENAI_BASE_URL.
	KeyVariable, BaseVariable string
	// Own reports whether the address is the service's own, not that of a compatible
	// server.
	Own bool
	// Reasoning is how reasoning goes back.
	Reasoning Reasoning
	// Effort is the form in which a request names the effort.
	Effort EffortStyle
	// Efforts returns the efforts that a model takes. Nil, or a nil result: all.
	Efforts func(model string) []harnessv1.Effort
	// CacheKey sends the request's cache key as prompt_cache_key.
	CacheKey bool
	// Body are additional members of each request, sent as they are written.
	Body map[string]json.RawMessage
	// HTTPClient sends the requests; nil is a separate client without a total
	// timeout. A timeout of the client would cut long streams.
	HTTPClient *http.Client
}

// Reasoning is how a server takes back the reasoning of its answers.
type Reasoning struct { // lang: participle — the services call it so
	// Field is the member in which reasoning goes back: reasoning_content, reasoning or
	// reasoning_details. Empty: the members in which it came.
	Field string
	// Back is when it goes back.
	Back Back
	// Blank is the value of Field in a message that has no reasoning to go back, such as
	// one space for Kimi. Without HasBlank the message has no Field then.
	Blank string
	// HasBlank reports whether Blank is sent.
	HasBlank bool
	// Chunks reports whether reasoning is in chunks of the content, and goes back there
	// (Mistral).
	Chunks bool
}

// Back is when reasoning goes back.
type Back int

// When reasoning goes back.
const (
	// BackNever: the server refuses it, or has no use for it.
	BackNever Back = iota
	// BackWithCalls: in answers with tool calls.
	BackWithCalls
	// BackAlways: in each answer.
	BackAlways
)

// EffortStyle is the form in which a request names how much the model reasons.
type EffortStyle string

// The styles of effort.
const (
	// EffortNone sends nothing.
	EffortNone EffortStyle = ""
	// EffortField sends "reasoning_effort": "low".
	EffortField EffortStyle = "reasoning_effort"
	// EffortObject sends "reasoning": {"effort": "low"}.
	EffortObject EffortStyle = "reasoning"
	// EffortThinking sends "thinking": {"type": "enabled"} or disabled, and
	// "reasoning_effort" when it is enabled.
	EffortThinking EffortStyle = "thinking"
)

// fill sets the defaults.
func (c *Config) fill() {
	for _, field := range []struct {
		value   *string
		initial string
	}{
		{&c.Name, "openai"}, {&c.BaseURL, DefaultBaseURL},
		{&c.KeyVariable, "OPENAI_API_KEY"}, {&c.BaseVariable, "OPENAI_BASE_URL"},
	} {
		if *field.value == "" {
			*field.value = field.initial
		}
	}
}

// header returns the headers of each request.
func (c *Config) header() http.Header {
	header := c.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	switch {
	case c.APIKey == "":
	case c.KeyHeader == "":
		header.Set("Authorization", "Bearer "+c.APIKey)
	default:
		header.Set(c.KeyHeader, c.APIKey)
	}
	return header
}
