package openai

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// usage is the consumption as a server reports it. Cached tokens are in the details, or
// at the top: prompt_cache_hit_tokens at DeepSeek, cached_tokens at Moonshot.
type usage struct {
	PromptTokens     wire.Int `json:"prompt_tokens"`
	CompletionTokens wire.Int `json:"completion_tokens"`
	TotalTokens      wire.Int `json:"total_tokens"`
	CacheHitTokens   wire.Int `json:"prompt_cache_hit_tokens"`
	CachedTokens     wire.Int `json:"cached_tokens"`
	PromptDetails    struct {
		CachedTokens     wire.Int `json:"cached_tokens"`
		CacheWriteTokens wire.Int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens wire.Int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// greater returns the greater of two reports of one response: some servers send an empty one
// after the real one. Nil: none.
func greater(a, b *usage) *usage {
	if a == nil || b != nil && b.tokens() >= a.tokens() {
		return b
	}
	return a
}

func (u *usage) tokens() int64 {
	return int64(max(u.TotalTokens, u.PromptTokens+u.CompletionTokens))
}

func (u *usage) proto() *harnessv1.Usage {
	if u == nil {
		return &harnessv1.Usage{}
	}
	input, output := adapter.Count(int64(u.PromptTokens)), adapter.Count(int64(u.CompletionTokens))
	reasoning := adapter.Count(int64(u.CompletionDetails.ReasoningTokens))
	// Gemini and xAI count reasoning in the total only. It is billed as output.
	if total := adapter.Count(int64(u.TotalTokens)); total > input+output {
		reasoning = max(reasoning, total-input-output)
		output = total - input
	}
	return &harnessv1.Usage{
		InputTokens: input, OutputTokens: output,
		CachedInputTokens: adapter.Count(int64(max(u.PromptDetails.CachedTokens, u.CacheHitTokens, u.CachedTokens))),
		CacheWriteTokens:  adapter.Count(int64(u.PromptDetails.CacheWriteTokens)),
		ReasoningTokens:   reasoning,
	}
}
