package catalogue

import (
	"slices"
	"strings"
)

// check returns an error if something in a file does not fit the rest of a catalogue
// that contains it.
func (p *parser) check(c *Catalogue, file *contents) error {
	for _, m := range file.providers {
		if err := p.checkNames(c, m); err != nil {
			return err
		}
		if m.ModelsOf != "" && c.providers[m.ModelsOf] == nil {
			return p.fail(m.at, "provider %s has the models of %s, which is unknown: must be one of %s", m.Name, m.ModelsOf, strings.Join(c.order, ", "))
		}
	}
	for _, m := range file.models {
		provider, _ := c.ProviderOf(m.ref)
		if provider != nil && m.entry.Wire != "" && !provider.Speaks(m.entry.Wire) {
			return p.fail(m.at, "%s has the wire %s, which its provider does not have: it has %s", m.ref, m.entry.Wire, joined(provider.Wires))
		}
	}
	return nil
}

// checkNames returns an error if a name of a provider is one of another provider.
func (p *parser) checkNames(c *Catalogue, m placedProvider) error {
	for _, other := range c.Providers() {
		if other == m.Provider {
			continue
		}
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if name == other.Name || slices.Contains(other.Aliases, name) {
				return p.fail(m.at, "%s is a name of the provider %s: replace that one, or choose another name", name, other.Name)
			}
		}
	}
	return nil
}

func joined(wires []Wire) string {
	names := make([]string, len(wires))
	for i, w := range wires {
		names[i] = string(w)
	}
	return strings.Join(names, ", ")
}
