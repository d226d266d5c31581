package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// Config is the server and how to reach it. The zero value is the service
// without a key.
type Config struct {
	// Name is the prefix of the provider's models and a part of its endpoint; default
	// anthropic.
	Name string
	// BaseURL is the address without the version path, such as
	// http://127.0.0.1:8000; default DefaultBaseURL.
	BaseURL string
	// APIKey is sent in KeyHeader; empty sends none.
	APIKey string
	// KeyHeader is the header of the key. Empty: X-Api-Key. In Authorization the key
	// follows Bearer.
	KeyHeader string
	// Header is sent with each request, in addition to the key.
	Header http.Header
	// KeyVariable and BaseVariable are the environment variables of the key and of the
	// address, for the texts of errors; default ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL.
	KeyVariable, BaseVariable string
	// MaxOutput returns the most that a model writes in one response, in tokens. 0,
	// or a nil function, means DefaultMaxOutput.
	MaxOutput func(model string) uint32
	// Thinking returns how a model thinks; nil: none does.
	Thinking func(model string) Thinking
	// Reads returns the other models whose thinking a model reads; nil: none.
	Reads func(model string) []string
	// Choices are the models of a request that names none, the first choice first.
	Choices []string
	// Takes returns the images and documents that a model takes; nil: none.
	Takes func(model string) media.Takes
	// Schemas sends the JSON Schema of an answer as output_config.format.
	Schemas bool
	// Body are additional members of each request, sent as they are written. Members
	// that the provider sends cannot be among them.
	Body map[string]json.RawMessage
	// HTTPClient sends the requests; nil is a separate client without a total
	// timeout. A timeout of the client would cut long streams.
	HTTPClient *http.Client
}

// fill sets the defaults.
func (c *Config) fill() {
	for _, field := range []struct {
		value   *string
		initial string
	}{
		{&c.Name, "anthropic"}, {&c.BaseURL, DefaultBaseURL}, {&c.KeyHeader, "X-Api-Key"},
		{&c.KeyVariable, "ANTHROPIC_API_KEY"}, {&c.BaseVariable, "ANTHROPIC_BASE_URL"},
	} {
		if *field.value == "" {
			*field.value = field.initial
		}
	}
}

// header returns the headers of each request.
func (c *Config) header() http.Header {
	header := http.Header{}
	maps.Copy(header, c.Header)
	header.Set("Anthropic-Version", version)
	switch {
	case c.APIKey == "":
	case http.CanonicalHeaderKey(c.KeyHeader) == "Authorization":
		header.Set(c.KeyHeader, "Bearer "+c.APIKey)
	default:
		header.Set(c.KeyHeader, c.APIKey)
	}
	return header
}

// ownMembers are the members of a request that Body cannot set.
var ownMembers = []string{"max_tokens", "messages", "model", "output_config", "stream", "system", "thinking", "tools"}

// checkBody returns an error if Body has a member that is not JSON or that the provider
// sends.
func (c *Config) checkBody() error {
	for _, name := range slices.Sorted(maps.Keys(c.Body)) {
		if slices.Contains(ownMembers, name) {
			return fmt.Errorf("the additional member %q of requests is one that the provider sends: remove it", name)
		}
		if !json.Valid(c.Body[name]) {
			return fmt.Errorf("the additional member %q of requests must be JSON", name)
		}
	}
	return nil
}

// end writes the members of Body and the end of a request.
func (c *Config) end(request *wire.Body) {
	for _, name := range slices.Sorted(maps.Keys(c.Body)) {
		_ = request.WriteByte(',')
		_ = request.Encode(name) // a string always encodes
		_ = request.WriteByte(':')
		_, _ = request.Write(c.Body[name])
	}
	_ = request.WriteByte('}')
}
