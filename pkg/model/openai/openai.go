// Package openai is the provider for OpenAI's chat completions and for any server
// that is compatible with them. The try, its timeouts and its errors are those
// of package adapter; this package encodes requests and decodes responses.
//
// Invariants:
//   - A request has only what every compatible server knows: model, messages,
//     tools, stream, stream_options.
//   - The headers of a request are Authorization (with a key), Accept,
//     Content-Type and User-Agent.
//   - Tool arguments are returned as the model wrote them.
//   - The environment is not read, except for the proxies.
package openai

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// DefaultBaseURL is the address of the service, which requires a key.
const DefaultBaseURL = "https://api.openai.com/v1"

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct{ *adapter.Provider }

var _ model.Provider = (*Provider)(nil)

// New returns a Provider. It sends nothing. It fails if BaseURL is not an http
// or https address.
func New(cfg Config) (*Provider, error) {
	cfg.fill()
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the base URL must be an http or https address that includes the version path, such as https://api.openai.com/v1")
	}
	return &Provider{adapter.New(cfg.protocol(), wire.NewClient(u, cfg.header(), cfg.HTTPClient), cfg.APIKey)}, nil
}

// protocol returns the wire with the settings of the server.
func (c *Config) protocol() adapter.Protocol {
	errs := refusals
	errs.KeyVariable, errs.BaseVariable = c.KeyVariable, c.BaseVariable
	return adapter.Protocol{
		Name: c.Name, Wire: "chat", ModelsPath: "models", Path: "chat/completions",
		Encode:    encode,
		Decode:    decode,
		NewStream: func() adapter.Stream { return &stream{} },
		Refusals:  errs,
	}
}

// refusals has the code of the service, and the phrases of compatible servers
// (vLLM, llama.cpp, LM Studio and gateways to other models).
var refusals = adapter.Refusals{
	BaseHint:        "includes /v1",
	ContextCodes:    []string{"context_length_exceeded", "exceed_context_size_error"},
	ContextStatuses: []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity},
	ContextPhrases: []string{
		"maximum context length", "context_length_exceeded", "context length exceeded", "exceeds the context",
		"exceeds the available context", "exceed context", "context window", "prompt is too long", "input is too long",
		"context size has been exceeded",
	},
}
