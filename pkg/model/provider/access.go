package provider

import (
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// access is where a provider is and how it knows its user, with the values of the
// environment.
type access struct {
	address string
	own     bool // the address is the provider's own
	key     string
	header  http.Header // in addition to the key
	tokens  *tokenSource
	secrets []string // apart from key and tokens
	// keyName and addressName describe where the key and the address come from.
	keyName, addressName string
}

// newAccess reads the environment. It fails if something is missing that the provider
// requires.
func newAccess(p *catalogue.Provider, env func(string) string) (*access, error) {
	a := &access{keyName: p.KeyVariable, addressName: p.AddressVariable}
	if a.addressName == "" {
		a.addressName = "the address of " + p.Name + " in the catalogue"
	}
	if err := a.findAddress(p, env); err != nil {
		return nil, err
	}
	if err := a.findKey(p, env); err != nil {
		return nil, err
	}
	return a, a.findHeader(p, env)
}

func (a *access) findAddress(p *catalogue.Provider, env func(string) string) error {
	if p.AddressVariable != "" {
		a.address = env(p.AddressVariable)
	}
	if a.address == "" && p.Address == "" {
		return fmt.Errorf("%s is not set: set it to the address of %s", p.AddressVariable, p.Name)
	}
	if a.address == "" {
		missing := ""
		address, err := catalogue.Expand(p.Address, func(name string) string {
			value := env(name)
			if value == "" {
				missing = name
			}
			return value
		})
		switch {
		case err != nil:
			return fmt.Errorf("the address of %s in the catalogue: %w", p.Name, err)
		case missing != "" && p.AddressVariable != "":
			return fmt.Errorf("%s is not set: set it, or %s to the address of %s", missing, p.AddressVariable, p.Name)
		case missing != "":
			return fmt.Errorf("%s is not set: set it, the address of %s contains it", missing, p.Name)
		}
		a.address = address
	}
	a.own = p.Owns(a.address)
	return nil
}

// findKey finds the key, or the program that prints one. The provider's own address
// requires one of them.
func (a *access) findKey(p *catalogue.Provider, env func(string) string) error {
	if p.KeyVariable != "" {
		a.key = env(p.KeyVariable)
	}
	switch {
	case strings.ContainsAny(a.key, "\r\n"):
		return fmt.Errorf("%s contains a line break: set it to the key alone", p.KeyVariable)
	case a.key != "":
		return nil
	case len(p.TokenCommand) > 0:
		a.keyName = "the token command of " + p.Name
		if _, err := exec.LookPath(p.TokenCommand[0]); err != nil {
			return fmt.Errorf("the token command of %s: %q is not an executable file: install it, or correct token_command", p.Name, p.TokenCommand[0])
		}
		a.tokens = newTokenSource(p.Name, p.TokenCommand)
		return nil
	case p.KeyVariable == "":
		a.keyName = "the key of " + p.Name + ", for which the catalogue has no variable"
		return nil
	case !a.own || p.KeyOptional:
		return nil
	case p.AddressVariable == "" || p.Address == "":
		return fmt.Errorf("%s is not set: set it to the key of %s", p.KeyVariable, p.Name)
	default:
		return fmt.Errorf("%s is not set: set it, or %s for a compatible server that needs no key", p.KeyVariable, p.AddressVariable)
	}
}

// findHeader replaces the variables in additional headers. Their values are secrets.
func (a *access) findHeader(p *catalogue.Provider, env func(string) string) error {
	a.header = http.Header{}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		missing := ""
		value, err := catalogue.Expand(p.Headers[name], func(variable string) string {
			value := env(variable)
			if value == "" || strings.ContainsAny(value, "\r\n") {
				missing = variable
			}
			a.secrets = append(a.secrets, value)
			return value
		})
		if err != nil {
			return fmt.Errorf("the header %s of %s in the catalogue: %w", name, p.Name, err)
		}
		if missing != "" {
			return fmt.Errorf("%s is not set, or contains a line break: the header %s of %s contains it", missing, name, p.Name)
		}
		a.header.Set(name, value)
	}
	return nil
}
