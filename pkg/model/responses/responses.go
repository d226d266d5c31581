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
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

const (
	// DefaultBaseURL is the address of the service, which requires a key.
	DefaultBaseURL = "https://api.openai.com/v1"
	// Wire is the name of the wire.
	Wire = "responses"
)

// Config is the server, how to reach it, and what it takes. The zero value is the
// service without a key.
type Config struct {
	// Name is the prefix of the provider's models and a part of its endpoint; default
	// openai.
	Name string
	// BaseURL includes the version path, such as http://127.0.0.1:8000/v1;
	// default DefaultBaseURL, which is always Own.
	BaseURL string
	// APIKey is sent in KeyHeader; empty sends none.
	APIKey string
	// KeyHeader is the header of the key, such as api-key. Empty: Authorization, with
	// Bearer.
	KeyHeader string
	// Header is sent with each request, in addition to the key.
	Header http.Header
	// KeyVariable and BaseVariable are the environment variables of the key and of the
	// address, for the texts of errors; default OPENAI_API_KEY and OPENAI_BASE_URL.
	KeyVariable, BaseVariable string
	// Own reports whether the address is the service's own. At another address, a
	// server that does not know the path is one that speaks chat completions only.
	Own bool
	// Efforts returns the efforts that a model takes. Nil, or a nil result: all.
	Efforts func(model string) []harnessv1.Effort
	// Reasons reports whether a model reasons. Nil: each does.
	Reasons func(model string) bool
	// Choices are the models of a request that names none, the first choice first.
	Choices []string
	// Takes returns the images and documents that a model takes. Nil: none.
	Takes func(model string) media.Takes
	// Schemas sends the JSON Schema of an answer as text.format.
	Schemas bool
	// Body are additional members of each request, sent as they are written. Members
	// that the provider sends cannot be among them.
	Body map[string]json.RawMessage
	// HTTPClient sends the requests; nil is a separate client without a total
	// timeout. A timeout of the client would cut long streams.
	HTTPClient *http.Client
}

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct{ *adapter.Provider }

var _ model.Provider = (*Provider)(nil)

// New returns a Provider. It sends nothing. It fails if BaseURL is not an http or https
// address, or if Body has a member that is not JSON or that the provider sends.
func New(cfg Config) (*Provider, error) {
	cfg.fill()
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the base URL must be an http or https address that includes the version path, such as https://api.openai.com/v1")
	}
	for name, value := range cfg.Body {
		if slices.Contains(members, name) {
			return nil, fmt.Errorf("the additional member %q of requests is one that the provider sends: remove it", name)
		}
		if !json.Valid(value) {
			return nil, fmt.Errorf("the additional member %q of requests must be JSON", name)
		}
	}
	return &Provider{adapter.New(cfg.protocol(), wire.NewClient(u, cfg.header(), cfg.HTTPClient), cfg.APIKey)}, nil
}

// fill sets the defaults.
func (c *Config) fill() {
	if c.BaseURL == "" {
		c.BaseURL, c.Own = DefaultBaseURL, true
	}
	for _, field := range []struct {
		value   *string
		initial string
	}{
		{&c.Name, "openai"}, {&c.KeyVariable, "OPENAI_API_KEY"}, {&c.BaseVariable, "OPENAI_BASE_URL"},
	} {
		if *field.value == "" {
			*field.value = field.initial
		}
	}
}

// header returns the headers of each request.
func (c *Config) header() http.Header {
	header := http.Header{}
	for name, values := range c.Header {
		for _, value := range values {
			header.Add(name, value)
		}
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

// protocol returns the wire with the settings of the server.
func (c *Config) protocol() adapter.Protocol {
	encoder := &encoder{efforts: c.Efforts, reasons: c.Reasons, extra: c.extra()}
	decoder := &decoder{refusals: c.refusals()}
	return adapter.Protocol{
		Name: c.Name, Wire: Wire, Takes: c.Takes, Choices: c.Choices, ModelsPath: "models", Path: "responses",
		Schemas:    c.Schemas && c.Body[memberText] == nil,
		Encode:     encoder.encode,
		Decode:     decoder.decode,
		NewStream:  func() adapter.Stream { return decoder.stream() },
		KeepsAlive: true,
		Refusals:   decoder.refusals,
	}
}

// extra returns the additional members in the order in which they are sent, that of
// their names.
func (c *Config) extra() []member {
	extra := make([]member, 0, len(c.Body))
	for name, value := range c.Body {
		extra = append(extra, member{name, value})
	}
	slices.SortFunc(extra, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return extra
}
