package anthropic

import (
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// Config is the server and how to reach it. The zero value is the service
// without a key.
type Config struct {
	// Endpoint of the service, or of a compatible server.
	adapter.Endpoint
	// MaxOutput returns the most that a model writes in one response, in tokens. 0,
	// or a nil function, means DefaultMaxOutput.
	MaxOutput func(model string) uint32
	// Thinking returns how a model thinks; nil: none does.
	Thinking func(model string) Thinking
	// Reads returns the other models whose thinking a model reads; nil: none.
	Reads func(model string) []string
}

// ownMembers are the members of a request that Body cannot set.
var ownMembers = []string{"max_tokens", "messages", "model", "output_config", "stream", "system", "thinking", "tools"}

// end writes the members of Body, by their names, and the end of a request.
func (c *Config) end(request *wire.Body, names []string) {
	for _, name := range names {
		_ = request.WriteByte(',')
		_ = request.Encode(name) // a string always encodes
		_ = request.WriteByte(':')
		_, _ = request.Write(c.Body[name])
	}
	_ = request.WriteByte('}')
}
