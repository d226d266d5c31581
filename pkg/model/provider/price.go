package provider

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// Price is the cost of an answer of the model ref by a catalogue, in millionths
// of a US dollar; 0 where the price is not known. A ref without a name is the model
// that the provider says answered.
func Price(c *catalogue.Catalogue, ref string, r *model.Response) uint64 {
	if strings.HasSuffix(ref, ":") {
		ref += r.Model
	}
	return c.Lookup(ref).Cost(r.Usage)
}

// Priced reports whether the price of the model ref is known. A scripted model costs
// nothing.
func Priced(c *catalogue.Catalogue, ref string) bool {
	return strings.HasPrefix(ref, scripted+":") || c.Lookup(ref).Priced
}
