package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// Config is the server, how to reach it, and what it takes. The zero value is the
// service without a key.
type Config struct {
	// Endpoint of the service, or of a compatible server.
	adapter.Endpoint
	// Reasoning is how reasoning goes back.
	Reasoning Reasoning
	// Effort is the form in which a request names the effort.
	Effort EffortStyle
	// Efforts returns the efforts that a model takes. Nil, or a nil result: all.
	Efforts func(model string) []harnessv1.Effort
	// NoStreamOptions leaves stream_options out, for a server that refuses it and reports
	// the usage of a stream unasked (Mistral).
	NoStreamOptions bool
	// NoUserAfterResults puts a fixed answer between results of calls and a message of the
	// user that follows them, for a server that refuses the one after the other (Mistral:
	// "Unexpected role 'user' after role 'tool'").
	NoUserAfterResults bool
	// ShortCallIDs replaces ids of calls that are not nine letters and digits by such ids,
	// for a server that refuses others (Mistral).
	ShortCallIDs bool
	// CacheKey sends the request's cache key as prompt_cache_key.
	CacheKey bool
}

// Reasoning is how a server takes back the reasoning of its answers. It does not cover
// extra_content, which goes back on the call or the message that it came with.
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
	// Signature gives the first call of each answer that has no extra_content a stand-in
	// for the signature that the server demands (Gemini).
	Signature bool
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

// The styles of effort. EFFORT_UNSPECIFIED sends nothing in any of them.
const (
	// EffortNone sends nothing.
	EffortNone EffortStyle = ""
	// EffortField sends "reasoning_effort": "low". It is the style of OpenAI, Azure, xAI
	// (docs.x.ai, reasoning), Groq (console.groq.com/docs/reasoning), Mistral
	// (docs.mistral.ai/capabilities/reasoning), Gemini's compatible address
	// (ai.google.dev/gemini-api/docs/openai), Ollama (ollama#14820), vLLM (protocol.py,
	// none to max) and llama.cpp (llama.cpp#26045).
	EffortField EffortStyle = "reasoning_effort"
	// EffortObject sends "reasoning": {"effort": "low"}. It is the style of OpenRouter
	// (openrouter.ai/docs/use-cases/reasoning-tokens).
	EffortObject EffortStyle = "reasoning"
	// EffortThinking sends "thinking": {"type": "enabled"} with "reasoning_effort", or
	// {"type": "disabled"} alone. It is the style of DeepSeek
	// (api-docs.deepseek.com/guides/thinking_mode), Z.ai
	// (docs.z.ai/guides/capabilities/thinking-mode) and Moonshot, where K3 reads the effort,
	// K2 reads the switch, and each ignores the other (platform.kimi.ai,
	// use-thinking-effort).
	EffortThinking EffortStyle = "thinking"
	// EffortSwitch sends "enable_thinking": true with "reasoning_effort", or false alone.
	// It is the style of Alibaba's Qwen (help.aliyun.com/model-studio/deep-thinking).
	EffortSwitch EffortStyle = "enable_thinking"
)

const (
	// memberCacheKey is the member with the key of the cache.
	memberCacheKey = "prompt_cache_key"
	// memberStreamOptions is the member that asks for the usage of a stream.
	memberStreamOptions = "stream_options"
)

// reserved are the members of a request that Body cannot set.
var reserved = []string{"messages", "model", "tools", "stream", memberStreamOptions, memberCacheKey}

// check returns the first mistake in the settings.
func (c *Config) check() error {
	for _, name := range slices.Sorted(maps.Keys(c.Body)) {
		switch {
		case slices.Contains(reserved, name):
			return fmt.Errorf("body member %q: the provider sets it; remove it", name)
		case !json.Valid(c.Body[name]):
			return fmt.Errorf("body member %q: expected JSON", name)
		}
	}
	if c.Reasoning.HasBlank && c.Reasoning.Field == "" {
		return errors.New("a value for messages without reasoning needs the field that it goes into")
	}
	return nil
}
