package schemagen_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/schemagen"
)

var update = flag.Bool("update", false, "write the published schemas anew")

const root = "../../../../"

func TestThePublishedSchemasAreThoseOfTheProtos(t *testing.T) {
	made, err := schemagen.Generate(os.DirFS(root + "proto/harness/v1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(agentfile.Kinds()) {
		t.Errorf("%d schemas of %d kinds of files", len(made), len(agentfile.Kinds()))
	}
	for name, want := range made {
		path := filepath.Join(root+"schemas", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("schemas/%s is not what the protos give: go test ./cmd/harness/internal/schemagen -update", name)
		}
	}
}

// TestEachFieldIsDescribed holds that the comments of the protos are found.
func TestEachFieldIsDescribed(t *testing.T) {
	made, err := schemagen.Generate(os.DirFS(root + "proto/harness/v1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range made {
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		if name != "script.json" { // written by hand
			described(t, name, schema)
		}
	}
}

func described(t *testing.T, at string, schema any) {
	t.Helper()
	switch v := schema.(type) {
	case map[string]any:
		if text, ok := v["description"].(string); ok && text == "" {
			t.Errorf("%s has no description", at)
		}
		for name, inner := range v {
			described(t, at+"."+name, inner)
		}
	case []any:
		for _, inner := range v {
			described(t, at, inner)
		}
	}
}
