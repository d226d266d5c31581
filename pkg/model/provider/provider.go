// Package provider opens a model from its reference: a prefix that names the
// provider, a colon, and what the provider calls the model.
//
//	openai:NAME   an OpenAI-compatible server; openai: alone takes the first of its list
//	script:FILE   a scripted model
//
// Opening sends nothing. It fails with one line that says what to set; the
// line never holds a key.
package provider

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

// The variables of the environment that Open reads.
const (
	// EnvOpenAIKey is the key; required for the provider's own address only.
	EnvOpenAIKey = "OPENAI_API_KEY"
	// EnvOpenAIBaseURL is the address of a compatible server, with /v1.
	EnvOpenAIBaseURL = "OPENAI_BASE_URL"
)

const ways = "openai:NAME or script:FILE"

// Open resolves ref. name is the provider's own name of the model, which goes
// into model.Request.Model; it may be empty, and is the file of a script. An
// empty ref means the provider whose key or address is set. env reads the
// environment, os.Getenv for one; spaces around a value are ignored.
func Open(ref string, env func(string) string) (p model.Provider, name string, err error) {
	get := func(name string) string { return strings.TrimSpace(env(name)) }
	if ref == "" {
		if get(EnvOpenAIKey) == "" && get(EnvOpenAIBaseURL) == "" {
			return nil, "", fmt.Errorf("no model: name one (%s), or set %s, or %s for a compatible server", ways, EnvOpenAIKey, EnvOpenAIBaseURL)
		}
		ref = "openai:"
	}
	prefix, name, ok := strings.Cut(ref, ":")
	switch {
	case ok && prefix == "openai":
		p, err = openOpenAI(get(EnvOpenAIBaseURL), get(EnvOpenAIKey))
	case ok && prefix == "script":
		p, err = openScript(name)
	case ok:
		err = fmt.Errorf("model %q: there is no provider %q; a model is %s", ref, prefix, ways)
	default:
		err = fmt.Errorf("model %q names no provider; a model is %s, such as openai:%s", ref, ways, ref)
	}
	if err != nil {
		return nil, "", err
	}
	return p, name, nil
}

func openOpenAI(base, key string) (model.Provider, error) {
	if base == "" {
		base = openai.DefaultBaseURL
	}
	if strings.ContainsAny(key, "\r\n") {
		return nil, fmt.Errorf("%s holds a line break: set it to the key alone", EnvOpenAIKey)
	}
	if key == "" && ownAddress(base) {
		return nil, fmt.Errorf("%s is not set: set it, or %s for a compatible server that needs no key", EnvOpenAIKey, EnvOpenAIBaseURL)
	}
	p, err := openai.New(openai.Config{BaseURL: base, APIKey: key})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvOpenAIBaseURL, err)
	}
	return p, nil
}

// ownAddress says that base is the provider's own, which demands a key.
func ownAddress(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Hostname() == "openai.com" || strings.HasSuffix(u.Hostname(), ".openai.com"))
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
