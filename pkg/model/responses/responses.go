// Package responses is the provider for OpenAI's Responses API and for servers that are
// compatible with it. The try, its timeouts and its errors are those of package
// adapter; this package encodes requests and decodes responses.
//
// Invariants:
//   - The service stores nothing: a request contains the whole conversation and
//     forbids the service to store the response.
//   - A request has no sampling parameters, no limit of the output and no forced tool.
//   - The input is the last member of a request. While the settings, the instructions,
//     the tools and the adjustments stay the same, a request begins with all bytes of
//     the one before it up to the end of its input.
//   - Reasoning goes back as the bytes of the item that came, and only if the item has
//     encrypted content. Texts and calls go back without their ids, so that they are
//     valid without the reasoning that led to them.
//   - A reasoning item goes back only in front of something that it led to.
//   - An item is taken as it was when the service closed it. The service may leave the
//     output out of its last event.
//   - Tool arguments are returned as the model wrote them.
//   - The environment is not read, except for the proxies.
package responses

import (
	"errors"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

const (
	// defaultBaseURL is the address of the service, which requires a key.
	defaultBaseURL = "https://api.openai.com/v1"
	// Wire is the name of the wire.
	Wire = "responses"
)

// Config is the server, how to reach it, and what it takes. The zero value is the
// service without a key.
type Config struct {
	// Endpoint of the service, or of a compatible server.
	adapter.Endpoint
	// Efforts returns the efforts that a model takes. Nil, or a nil result: all.
	Efforts func(model string) []harnessv1.Effort
	// Reasons reports whether a model reasons. Nil: each does.
	Reasons func(model string) bool
}

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct{ *adapter.Provider }

var _ model.Provider = (*Provider)(nil)

// New returns a Provider. It sends nothing. It fails if BaseURL is not an http or https
// address, or if Body has a member that is not JSON or that the provider sends.
func New(cfg Config) (*Provider, error) {
	cfg.fill()
	u := cfg.URL()
	if u == nil {
		return nil, errors.New("the base URL must be an http or https address that includes the version path, such as https://api.openai.com/v1")
	}
	names, err := cfg.Members(members)
	if err != nil {
		return nil, err
	}
	return &Provider{cfg.Open(cfg.protocol(names), u, nil)}, nil
}

// fill sets the defaults. The default address is the service's own.
func (c *Config) fill() {
	c.Own = c.Own || c.BaseURL == ""
	c.Fill(adapter.Endpoint{Name: "openai", BaseURL: defaultBaseURL, KeyVariable: "OPENAI_API_KEY", BaseVariable: "OPENAI_BASE_URL"})
}

// protocol returns the wire with the settings of the server. names are those of the
// additional members.
func (c *Config) protocol(names []string) adapter.Protocol {
	encoder := &encoder{efforts: c.Efforts, reasons: c.Reasons}
	for _, name := range names {
		encoder.extra = append(encoder.extra, member{name, c.Body[name]})
	}
	decoder := &decoder{refusals: c.refusals()}
	return adapter.Protocol{
		Name: c.Name, Wire: Wire, Takes: c.Takes, Choices: c.Choices, ModelsPath: "models", Path: "responses",
		Schemas:    c.Schemas && c.Body[memberText] == nil,
		Optional:   encoder.optional(),
		Encode:     encoder.encode,
		Decode:     decoder.decode,
		NewStream:  func() adapter.Stream { return decoder.stream() },
		KeepsAlive: true,
		Refusals:   decoder.refusals,
	}
}
