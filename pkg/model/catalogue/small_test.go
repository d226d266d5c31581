package catalogue

import (
	"slices"
	"testing"
)

// withoutSmall are the providers whose models depend on their user: no small one is known.
var withoutSmall = []string{"openrouter", "ollama", "vllm", "llamacpp", "azure"}

// TestSmallModels: every other provider has a small model whose price is known, and none that people
// choose for runs is cheaper.
func TestSmallModels(t *testing.T) {
	c := Default()
	for _, p := range c.Providers() {
		small := c.Small(p.Name + ":any")
		if slices.Contains(withoutSmall, p.Name) {
			if small != "" {
				t.Errorf("%s has the small model %s", p.Name, small)
			}
			continue
		}
		m := c.Lookup(small)
		if small == "" || !m.Known || !m.Priced && p.ModelsOf == "" {
			t.Errorf("%s: the price of its small model %q is not known", p.Name, small)
			continue
		}
		for _, choice := range p.Choices {
			if other := c.Lookup(p.Name + ":" + choice); other.Prices.Output < m.Prices.Output {
				t.Errorf("%s is cheaper than %s", choice, small)
			}
		}
	}
}
