// Package schemas holds the published JSON Schemas (2020-12) of the files that a
// run is started with. They are made from the protos:
//
//	go test ./cmd/harness/internal/schemagen -update
package schemas

import (
	"embed"
	"fmt"
)

//go:embed *.json
var files embed.FS

// Of is the schema of a kind of file: agent, contract, jit, hooks, modes or
// script.
func Of(kind string) ([]byte, error) {
	data, err := files.ReadFile(kind + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no schema of %q", kind)
	}
	return data, nil
}
