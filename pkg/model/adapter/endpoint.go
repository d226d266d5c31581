package adapter

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// bearerHeader is the header whose key follows the word Bearer.
const bearerHeader = "Authorization"

// Endpoint is a server, how to reach it, and what it takes on every wire. The zero value is
// the service of the wire without a key.
type Endpoint struct {
	// Name is the prefix of the provider's models and a part of its endpoint. Default: that
	// of the wire's service, openai or anthropic.
	Name string
	// BaseURL includes the version path, such as http://127.0.0.1:8000/v1, except for the
	// messages wire. Default: the address of the wire's service.
	BaseURL string
	// APIKey is sent in KeyHeader; empty sends none.
	APIKey string
	// KeyHeader is the header of the key. Default: X-Api-Key on the messages wire, otherwise
	// Authorization, in which the key follows Bearer.
	KeyHeader string
	// Header is sent with each request, in addition to the key.
	Header http.Header
	// KeyVariable and BaseVariable are the environment variables of the key and of the
	// address, for the texts of errors. Default: those of the wire's service, such as
	// OPENAI_API_KEY and OPENAI_BASE_URL.
	KeyVariable, BaseVariable string
	// Own reports whether the address is the service's own, not that of a compatible
	// server.
	Own bool
	// Choices are the models of a request that names none, the first choice first.
	Choices []string
	// Takes returns the images and documents that a model takes. Nil: none.
	Takes func(model string) media.Takes
	// Schemas sends the JSON Schema of an answer, in the member that the wire has for it.
	Schemas bool
	// Body are additional members of each request, sent as they are written. Members that
	// the wire sends cannot be among them.
	Body map[string]json.RawMessage
	// HTTPClient sends the requests; nil is a separate client without a total
	// timeout. A timeout of the client would cut long streams.
	HTTPClient *http.Client
}

// Fill sets the names, the address and the header that are empty to those of the wire's
// service.
func (e *Endpoint) Fill(service Endpoint) {
	for _, field := range []struct {
		value   *string
		initial string
	}{
		{&e.Name, service.Name}, {&e.BaseURL, service.BaseURL}, {&e.KeyHeader, service.KeyHeader},
		{&e.KeyVariable, service.KeyVariable}, {&e.BaseVariable, service.BaseVariable},
	} {
		if *field.value == "" {
			*field.value = field.initial
		}
	}
	if e.KeyHeader == "" {
		e.KeyHeader = bearerHeader
	}
}

// URL returns the address; nil if it is not an http or https address.
func (e *Endpoint) URL() *url.URL {
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	return u
}

// Members returns the names of the members of Body in the order in which they are sent. It
// returns an error if one is not JSON or one of those that the wire sends.
func (e *Endpoint) Members(sent []string) ([]string, error) {
	names := slices.Sorted(maps.Keys(e.Body))
	for _, name := range names {
		if slices.Contains(sent, name) {
			return nil, fmt.Errorf("the additional member %q of requests is one that the provider sends: remove it", name)
		}
		if !json.Valid(e.Body[name]) {
			return nil, fmt.Errorf("the additional member %q of requests must be JSON", name)
		}
	}
	return names, nil
}

// Open returns the provider at an address of the endpoint. more are the headers of the wire,
// which replace those of the endpoint.
func (e *Endpoint) Open(p Protocol, at *url.URL, more http.Header) *Provider {
	header := http.Header{}
	for name, values := range e.Header {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	maps.Copy(header, more)
	switch {
	case e.APIKey == "":
	case http.CanonicalHeaderKey(e.KeyHeader) == bearerHeader:
		header.Set(e.KeyHeader, "Bearer "+e.APIKey)
	default:
		header.Set(e.KeyHeader, e.APIKey)
	}
	return New(p, wire.NewClient(at, header, e.HTTPClient), e.APIKey)
}
