package main

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// models is what a mesh in this process knows of models. Verbs that make a run go on
// here without the flag have the file from the environment.
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
