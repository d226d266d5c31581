package provider

import (
	"fmt"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// Efforts returns the efforts that a model takes. Nil means that they are not known, an
// empty list that requests to the model must name none.
func Efforts(c *catalogue.Catalogue, ref string) []harnessv1.Effort {
	e := c.Lookup(ref)
	p, _ := c.ProviderOf(ref)
	if p != nil && usualWire(p, e) == catalogue.WireChat && p.Effort == catalogue.EffortUnsupported {
		return []harnessv1.Effort{}
	}
	return e.Efforts
}

// CheckEffort returns an error if a model is known not to take an effort.
func CheckEffort(c *catalogue.Catalogue, ref string, effort harnessv1.Effort) error {
	have := Efforts(c, ref)
	switch {
	case effort == harnessv1.Effort_EFFORT_UNSPECIFIED, slices.Contains(have, effort):
		return nil
	case have == nil && c.Lookup(ref).AlwaysOn && effort == harnessv1.Effort_EFFORT_NONE:
		return fmt.Errorf("model %s always reasons: choose another effort than none", ref)
	case have == nil:
		return nil
	case len(have) == 0:
		return fmt.Errorf("model %s takes no effort: leave it out", ref)
	}
	names := make([]string, len(have))
	for i, e := range have {
		names[i] = catalogue.EffortName(e)
	}
	return fmt.Errorf("model %s takes the efforts %s; not %s: choose one of them", ref, strings.Join(names, ", "), catalogue.EffortName(effort))
}
