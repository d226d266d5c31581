package openai

import (
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// optional are the members that servers refuse and that a request can be without: the request
// for the usage of a stream (vLLM before 0.4, Mistral, many gateways), the key of the cache,
// and the effort in any form.
func (c *Config) optional() []adapter.Optional {
	return []adapter.Optional{
		{
			Member: memberStreamOptions, Words: []string{memberStreamOptions, "include_usage", "streamoptions"},
			Setting: "no_stream_options: true of the provider",
			Sent:    func(req *model.Request, _ string) bool { return req.Streaming && !c.NoStreamOptions },
		},
		{
			Member: memberCacheKey, Words: []string{memberCacheKey}, Setting: "cache_key: false of the provider",
			Sent: func(req *model.Request, _ string) bool { return c.CacheKey && req.CacheKey != "" },
		},
		{
			Member: memberEffort, Words: []string{memberEffort, "reasoning.effort", memberSwitch}, Common: []string{memberObject, memberThinking, "effort"},
			Setting: "efforts: [] of the model",
			Sent:    func(req *model.Request, name string) bool { return len(c.effort(req.Effort, name)) > 0 },
		},
	}
}
