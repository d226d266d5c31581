package provider

import (
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// Open calls OpenWith with the embedded catalogue.
func Open(ref string, env func(string) string) (p model.Provider, name string, err error) {
	return OpenWith(catalogue.Default(), ref, env)
}
