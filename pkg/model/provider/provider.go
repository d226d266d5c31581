// Package provider opens a model from its reference: the name of a provider, a colon,
// and the provider's name of the model, such as anthropic:claude-sonnet-5-5. The
// catalogue describes the providers. script:FILE is a scripted model.
//
// A provider that has two wires uses the one of the model's catalogue entry, or its
// first. A refusal can switch it to the other one for the rest of the run, once.
//
// Opening sends nothing and starts no program. Its error is one line with what to set,
// and never contains a key.
package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

// The variables of the environment that Default reads.
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

// scripted is the prefix of scripted models.
const scripted = "script"

// ErrNoModel is returned if no model is named and the environment has none.
var ErrNoModel = errors.New("no model: name one (" + ways + "), or set " + keys)

// Default returns the reference of the model that is used if none is named: the
// provider whose key or address is set, openai or anthropic, without a name, which
// stands for the first model of its list. If both are set it is openai:. The error is
// ErrNoModel.
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
// are ignored. The catalogue has the providers, and what their models take.
func OpenWith(c *catalogue.Catalogue, ref string, env func(string) string) (p model.Provider, name string, err error) {
	if ref == "" {
		if ref, err = Default(env); err != nil {
			return nil, "", err
		}
	}
	prefix, name, ok := strings.Cut(ref, ":")
	if ok && prefix == scripted {
		p, err = openScript(name)
		return p, name, err
	}
	described, _ := c.ProviderOf(ref)
	if described == nil {
		return nil, "", unknown(c, ref)
	}
	p, err = open(c, described, func(name string) string { return strings.TrimSpace(env(name)) })
	if err != nil {
		return nil, "", err
	}
	return p, name, nil
}

// unknown returns the error for a reference whose provider the catalogue does not have.
func unknown(c *catalogue.Catalogue, ref string) error {
	names := []string{}
	for _, p := range c.Providers() {
		names = append(names, p.Name)
	}
	all := strings.Join(names, ", ")
	prefix, _, ok := strings.Cut(ref, ":")
	if !ok {
		example := "openai:" + ref
		if strings.HasPrefix(ref, "claude") {
			example = "anthropic:" + ref
		}
		return fmt.Errorf("model %q names no provider; a model is PROVIDER:NAME, such as %s, or script:FILE; the providers are %s", ref, example, all)
	}
	hint := ""
	if near := fault.Nearest(prefix, names); near != "" {
		hint = " (did you mean " + near + "?)"
	}
	return fmt.Errorf("model %q: unknown provider %q%s; expected script or one of %s; add others with a catalogue file", ref, prefix, hint, all)
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
