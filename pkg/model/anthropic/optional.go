package anthropic

import (
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// memberCache is the member of blocks and tools that marks the end of a cached prompt.
const memberCache = "cache_control"

// optional are the members that compatible servers refuse and that a request can be without:
// the marks of the cache, and those that configure the thinking.
func (c *Config) optional() []adapter.Optional {
	return []adapter.Optional{
		{
			Member: memberCache, Words: []string{memberCache},
			Sent: func(*model.Request, string) bool { return true },
		},
		{
			Member: memberThinking, Words: []string{"output_config", "budget_tokens", "output_config.effort"}, Common: []string{memberThinking, "effort", "adaptive"},
			Setting: "thinking: none of the model",
			Sent: func(_ *model.Request, name string) bool {
				return c.Thinking != nil && c.Thinking(name).Mode != "" && c.Thinking(name).Mode != ThinkingNone
			},
		},
	}
}
