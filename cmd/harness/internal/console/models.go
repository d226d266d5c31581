package console

import "github.com/harnessmesh/harnessmesh/pkg/model/catalogue"

// Models returns the model catalogue of a mesh in this process. Commands without the
// flag use the file of the environment.
func (a *Console) Models() (*catalogue.Catalogue, error) {
	file := a.Catalogue
	if file == "" {
		file = a.Env(EnvName("catalogue"))
	}
	if file == "" {
		return catalogue.Default(), nil
	}
	c, err := catalogue.Load(file)
	if err != nil {
		return nil, FileError("--catalogue", err)
	}
	return c, nil
}
