package provider

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// Price is what a usage of the model ref costs by the embedded catalogue, in
// millionths of a US dollar; 0 where the price is not known.
func Price(ref string, u *harnessv1.Usage) uint64 { return catalogue.Lookup(ref).Cost(u) }
