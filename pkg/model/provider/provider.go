// Package provider opens a model from its reference: a prefix that names the
// provider, a colon, and what the provider calls the model.
//
//	openai:NAME      an OpenAI-compatible server; openai: alone takes the first of its list
//	anthropic:NAME   Anthropic, or a server that speaks its Messages protocol; anthropic: alone likewise
//	script:FILE      a scripted model
//
// Opening sends nothing. Its error is one line with what to set, and never contains
// a key.
package provider

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

// The variables of the environment that Open reads.
const (
	// EnvOpenAIKey is the key; required for the provider's own address only.
	EnvOpenAIKey = "OPENAI_API_KEY"
	// EnvOpenAIBaseURL is the address of a compatible server, with /v1.
	EnvOpenAIBaseURL = "OPENAI_BASE_URL"
	// EnvAnthropicKey is the key; required for the provider's own address only.
	EnvAnthropicKey = "ANTHROPIC_API_KEY"
	// EnvAnthropicBaseURL is the address of a compatible server, without /v1.
	EnvAnthropicBaseURL = "ANTHROPIC_BASE_URL"
)

const (
	ways = "openai:NAME, anthropic:NAME or script:FILE"
	// keys lists the variables that select a model without naming one.
	keys = EnvOpenAIKey + " or " + EnvAnthropicKey + ", or " + EnvOpenAIBaseURL + " or " + EnvAnthropicBaseURL + " for a compatible server"
)

// ErrNoModel is returned if no model is named and the environment has none.
var ErrNoModel = errors.New("no model: name one (" + ways + "), or set " + keys)

// Default returns the reference of the model that is used if none is named: the
// provider whose key or address is set, without a name, which stands for the first
// model of its list. If both are set it is openai:. The error is ErrNoModel.
func Default(env func(string) string) (ref string, err error) {
	set := func(name string) bool { return strings.TrimSpace(env(name)) != "" }
	switch {
	case set(EnvOpenAIKey), set(EnvOpenAIBaseURL):
		return "openai:", nil
	case set(EnvAnthropicKey), set(EnvAnthropicBaseURL):
		return "anthropic:", nil
	}
	return "", ErrNoModel
}

// Open calls OpenWith with the embedded catalogue.
func Open(ref string, env func(string) string) (p model.Provider, name string, err error) {
	return OpenWith(catalogue.Default(), ref, env)
}

// OpenWith resolves ref. name is the provider's name of the model, for
// model.Request.Model; it may be empty, and is the file of a script. An empty ref
// means Default. env reads the environment, such as os.Getenv; spaces around a value
// are ignored. The catalogue has the maximum output of a model, which some protocols
// require.
func OpenWith(c *catalogue.Catalogue, ref string, env func(string) string) (p model.Provider, name string, err error) {
	get := func(name string) string { return strings.TrimSpace(env(name)) }
	if ref == "" {
		if ref, err = Default(env); err != nil {
			return nil, "", err
		}
	}
	prefix, name, ok := strings.Cut(ref, ":")
	switch {
	case ok && prefix == "openai":
		p, err = openOpenAI(get(EnvOpenAIBaseURL), get(EnvOpenAIKey))
	case ok && prefix == "anthropic":
		p, err = openAnthropic(get(EnvAnthropicBaseURL), get(EnvAnthropicKey), c)
	case ok && prefix == "script":
		p, err = openScript(name)
	case ok:
		err = fmt.Errorf("model %q: there is no provider %q; a model is %s", ref, prefix, ways)
	case strings.HasPrefix(ref, "claude"):
		err = fmt.Errorf("model %q names no provider; a model is %s, such as anthropic:%s", ref, ways, ref)
	default:
		err = fmt.Errorf("model %q names no provider; a model is %s, such as openai:%s", ref, ways, ref)
	}
	if err != nil {
		return nil, "", err
	}
	return p, name, nil
}

func openAnthropic(base, key string, c *catalogue.Catalogue) (model.Provider, error) {
	if base == "" {
		base = anthropic.DefaultBaseURL
	}
	if err := checkKey(EnvAnthropicKey, key, EnvAnthropicBaseURL, base, "anthropic.com"); err != nil {
		return nil, err
	}
	p, err := anthropic.New(anthropic.Config{
		BaseURL: base, APIKey: key,
		MaxOutput: func(name string) uint32 { return c.Lookup("anthropic:" + name).MaxOutput },
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvAnthropicBaseURL, err)
	}
	return p, nil
}

// checkKey returns an error if the key is missing for an address in the domain own,
// or does not fit in a header.
func checkKey(keyName, key, baseName, base, own string) error {
	if strings.ContainsAny(key, "\r\n") {
		return fmt.Errorf("%s contains a line break: set it to the key alone", keyName)
	}
	if u, err := url.Parse(base); key == "" && err == nil && (u.Hostname() == own || strings.HasSuffix(u.Hostname(), "."+own)) {
		return fmt.Errorf("%s is not set: set it, or %s for a compatible server that needs no key", keyName, baseName)
	}
	return nil
}

func openOpenAI(base, key string) (model.Provider, error) {
	if base == "" {
		base = openai.DefaultBaseURL
	}
	if err := checkKey(EnvOpenAIKey, key, EnvOpenAIBaseURL, base, "openai.com"); err != nil {
		return nil, err
	}
	p, err := openai.New(openai.Config{BaseURL: base, APIKey: key})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvOpenAIBaseURL, err)
	}
	return p, nil
}

func openScript(file string) (model.Provider, error) {
	if file == "" {
		return nil, errors.New("script: names no file; write script:FILE")
	}
	s, err := script.Load(file)
	if err != nil {
		return nil, err
	}
	return script.NewProvider(s), nil
}
