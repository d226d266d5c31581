// Package openai is the provider for OpenAI's chat completions and for any server
// that is compatible with them. The try, its timeouts and its errors are those
// of package adapter; this package encodes requests and decodes responses. Compatible
// servers differ in what becomes of reasoning and in how a request names an effort: the
// Config has what a server takes.
//
// Invariants:
//   - With the zero Config, a request has only what every compatible server knows: model,
//     messages, tools, stream, stream_options. Sampling parameters and tool_choice are
//     never set.
//   - The headers of a request are the one of the key, those of the Config, Accept,
//     Content-Type and User-Agent.
//   - A request begins with the former one of its conversation, byte for byte.
//   - Reasoning goes back in the member, and in the answers, that the Config names; its
//     JSON is the one that came. Where it never goes back, none of it is kept but the text
//     for people. What came as extra_content goes back in any case.
//   - Tool arguments are returned as the model wrote them.
//   - The environment is not read, except for the proxies.
package openai

import (
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// defaultBaseURL is the address of the service, which requires a key.
const defaultBaseURL = "https://api.openai.com/v1"

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct{ *adapter.Provider }

var _ model.Provider = (*Provider)(nil)

// New returns a Provider. It sends nothing. It fails if BaseURL is not an http
// or https address.
func New(cfg Config) (*Provider, error) {
	cfg.Fill(adapter.Endpoint{Name: "openai", BaseURL: defaultBaseURL, KeyVariable: "OPENAI_API_KEY", BaseVariable: "OPENAI_BASE_URL"})
	if err := cfg.check(); err != nil {
		return nil, err
	}
	u := cfg.URL()
	if u == nil {
		return nil, errors.New("the base URL must be an http or https address that includes the version path, such as https://api.openai.com/v1")
	}
	return &Provider{cfg.Open(cfg.protocol(), u, nil)}, nil
}

// protocol returns the wire with the settings of the server.
func (c *Config) protocol() adapter.Protocol {
	errs := refusals
	errs.KeyVariable, errs.BaseVariable = c.KeyVariable, c.BaseVariable
	d := decoder{reasoning: &c.Reasoning, refusals: &errs}
	return adapter.Protocol{
		Name: c.Name, Wire: "chat", Takes: c.Takes, Choices: c.Choices, ModelsPath: "models", Path: "chat/completions",
		Schemas:   c.Schemas && c.Body[memberFormat] == nil,
		Optional:  c.optional(),
		Encode:    c.encode,
		Decode:    d.decode,
		NewStream: func() adapter.Stream { return d.stream() },
		Refusals:  errs,
	}
}
