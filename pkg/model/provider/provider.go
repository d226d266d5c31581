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
	"context"
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
	// envOpenAIKey is the key; required for the provider's own address only.
	envOpenAIKey = "OPENAI_API_KEY"
	// envOpenAIBaseURL is the address of a compatible server, with /v1.
	envOpenAIBaseURL = "OPENAI_BASE_URL"
	// envAnthropicKey is the key; required for the provider's own address only.
	envAnthropicKey = "ANTHROPIC_API_KEY"
	// envAnthropicBaseURL is the address of a compatible server, without /v1.
	envAnthropicBaseURL = "ANTHROPIC_BASE_URL"
)

const (
	ways = "openai:NAME, anthropic:NAME or script:FILE"
	// keys lists the variables that select a model without naming one.
	keys = envOpenAIKey + " or " + envAnthropicKey + ", or " + envOpenAIBaseURL + " or " + envAnthropicBaseURL + " for a compatible server"
)

// scripted is the prefix of scripted models.
const scripted = "script"

// ErrNoModel is returned if no model is named and the environment has none.
var ErrNoModel = errors.New("no model: name one (" + ways + "), or set " + keys)

// Default returns the provider that is used if no model is named, as a reference without a
// name: openai or anthropic, whichever has its key or address set, openai: if both have.
// Resolve finds its model. The error is ErrNoModel.
func Default(env func(string) string) (ref string, err error) {
	set := func(name string) bool { return strings.TrimSpace(env(name)) != "" }
	switch {
	case set(envOpenAIKey), set(envOpenAIBaseURL):
		return "openai:", nil
	case set(envAnthropicKey), set(envAnthropicBaseURL):
		return "anthropic:", nil
	}
	return "", ErrNoModel
}

// Resolve returns the reference with the name of the model: for one without a name, and for
// an empty one, the first of the catalogue's choices that the provider lists, else the only
// one listed. chosen reports that it was found so, with one request. The error lists the
// models.
func Resolve(ctx context.Context, c *catalogue.Catalogue, ref string, env func(string) string) (named string, chosen bool, err error) {
	if ref == "" {
		if ref, err = Default(env); err != nil {
			return "", false, err
		}
	}
	if !strings.HasSuffix(ref, ":") || strings.Count(ref, ":") > 1 {
		return ref, false, nil
	}
	p, _, err := OpenWith(c, ref, env)
	if err != nil {
		return "", false, err
	}
	s, ok := p.(*service)
	if !ok {
		return ref, false, nil
	}
	defer func() { _ = s.Close() }()
	name, err := s.wires[s.described.Wires[0]].Model(ctx)
	if err != nil {
		return "", false, s.failure(&model.Request{}, err)
	}
	return ref + name, true, nil
}

// OpenWith resolves ref. name is the provider's name of the model, for
// model.Request.Model; it may be empty, and is the file of a script. An empty ref
// means Default. env reads the environment, such as os.Getenv; spaces around a value
// are ignored. The catalogue has the providers, and what their models take.
func OpenWith(c *catalogue.Catalogue, ref string, env func(string) string) (p model.Provider, name string, err error) {
	return OpenFrom(c, ref, env, script.Files{})
}

// OpenFrom is OpenWith for a process that reads scripted models from some files only.
func OpenFrom(c *catalogue.Catalogue, ref string, env func(string) string, scripts script.Files) (p model.Provider, name string, err error) {
	if ref == "" {
		if ref, err = Default(env); err != nil {
			return nil, "", err
		}
	}
	if file, ok := strings.CutPrefix(ref, scripted+":"); ok {
		p, err = openScript(file, scripts)
		return p, file, err
	}
	described, _ := c.ProviderOf(ref)
	if described == nil {
		return nil, "", unknown(c, ref)
	}
	_, name, _ = strings.Cut(ref, ":")
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

func openScript(file string, scripts script.Files) (model.Provider, error) {
	if file == "" {
		return nil, errors.New("script: names no file; write script:FILE")
	}
	s, err := scripts.Load(file)
	if err != nil {
		return nil, err
	}
	return script.NewProvider(s), nil
}
