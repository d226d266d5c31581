package cli

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// models returns the model catalogue of a mesh in this process. Commands without the
// flag use the file of the environment.
func (a *app) models() (*catalogue.Catalogue, error) {
	file := a.catalogue
	if file == "" {
		file = a.env(envName("catalogue"))
	}
	if file == "" {
		return catalogue.Default(), nil
	}
	c, err := catalogue.Load(file)
	if err != nil {
		return nil, fmt.Errorf("--catalogue: %w", err)
	}
	return c, nil
}
