// Package anthropic is the provider for Anthropic's Messages API and for any
// server that is compatible with it. The try, its timeouts and its errors are
// those of package adapter; this package encodes requests and decodes responses.
//
// Invariants:
//   - The bytes of a request are a pure function of the conversation and the
//     tools. A turn's request begins with the request of the turn before it,
//     except for the cache marks, which are not part of the cached prefix.
//   - Thinking goes back as the JSON that came, where it was, all of an answer or none.
//     Its text for people is never sent.
//   - The headers of a request are that of the key, Anthropic-Version, Accept,
//     Content-Type and User-Agent, and those of the configuration.
//   - Tool arguments are returned as the model wrote them.
//   - The environment is not read, except for the proxies.
//
// Models since Claude Fable 5.1 accept a block of thinking only while the system prompt,
// the tools and all messages before it are unchanged. A beta header could let the service
// drop other blocks, and some gateways refuse unknown betas. None is sent: package opaque
// selects only blocks whose request has the digest under which they were made.
//
// Sampling parameters are never sent, and tool use is not forced: newer models refuse
// both.
package anthropic

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// defaultBaseURL is the address of the service, which requires a key.
const defaultBaseURL = "https://api.anthropic.com"

// version is the version of the protocol.
const version = "2023-06-01"

const (
	// DefaultMaxOutput is the max_tokens of a model whose limit is not known: the
	// protocol requires a number, and the service refuses one above the model's.
	DefaultMaxOutput = 8192
	// plainMaxOutput bounds the max_tokens of a response that is not streamed:
	// connections without traffic for many minutes get cut.
	plainMaxOutput = 16384
)

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct{ *adapter.Provider }

var _ model.Provider = (*Provider)(nil)

// New returns a Provider. It sends nothing. It fails if BaseURL is not an http
// or https address, or includes the version path.
func New(cfg Config) (*Provider, error) {
	cfg.Fill(adapter.Endpoint{
		Name: "anthropic", BaseURL: defaultBaseURL, KeyHeader: "X-Api-Key", KeyVariable: "ANTHROPIC_API_KEY", BaseVariable: "ANTHROPIC_BASE_URL",
	})
	u := cfg.URL()
	if u == nil {
		return nil, errors.New("the base URL must be an http or https address without the version path, such as https://api.anthropic.com")
	}
	if path := strings.TrimRight(u.Path, "/"); strings.HasSuffix(path, "/v1") {
		return nil, fmt.Errorf("the base URL must not include the version path /v1: use %s://%s%s", u.Scheme, u.Host, strings.TrimSuffix(path, "/v1"))
	}
	names, err := cfg.Members(ownMembers)
	if err != nil {
		return nil, err
	}
	return &Provider{cfg.Open(cfg.protocol(names), u, http.Header{"Anthropic-Version": {version}})}, nil
}

// protocol returns the wire with the settings of the server. names are those of the
// additional members.
func (c *Config) protocol(names []string) adapter.Protocol {
	errs := refusals
	errs.KeyVariable, errs.BaseVariable = c.KeyVariable, c.BaseVariable
	return adapter.Protocol{
		Name: c.Name, Wire: "messages", Bound: true, Reads: c.Reads, Takes: c.Takes, Choices: c.Choices, ModelsPath: "v1/models", Path: "v1/messages",
		Schemas: c.Schemas, Optional: c.optional(),
		Encode: func(req *model.Request, name string) (any, error) {
			var thinking Thinking
			if c.Thinking != nil {
				thinking = c.Thinking(name)
			}
			body, err := encode(req, name, maxTokens(req, name, c.MaxOutput), thinking)
			if err != nil {
				return nil, err
			}
			c.end(body, names)
			return body, nil
		},
		Decode:     decode,
		NewStream:  func() adapter.Stream { return &stream{} },
		KeepsAlive: true,
		Refusals:   errs,
	}
}

func maxTokens(req *model.Request, name string, maxOutput func(string) uint32) uint32 {
	limit := uint32(0)
	if maxOutput != nil {
		limit = maxOutput(name)
	}
	if limit == 0 {
		limit = DefaultMaxOutput
	}
	if !req.Streaming {
		limit = min(limit, plainMaxOutput)
	}
	if req.MaxOutputTokens > 0 {
		limit = min(limit, req.MaxOutputTokens)
	}
	return limit
}
