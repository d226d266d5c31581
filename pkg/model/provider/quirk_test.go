package provider_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
)

// TestEachQuirkIsPassedOn: each switch of openai.Config is a field of a provider in the catalogue, and
// wires.go passes it on.
func TestEachQuirkIsPassedOn(t *testing.T) {
	wires, err := os.ReadFile("wires.go")
	if err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[catalogue.Provider]()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[openai.Config]()) {
		if field.Type.Kind() != reflect.Bool || len(field.Index) > 1 { // those of Endpoint describe the address
			continue
		}
		if _, ok := fields.FieldByName(field.Name); !ok {
			t.Errorf("catalogue.Provider has no field %s", field.Name)
		}
		if !strings.Contains(string(wires), field.Name+": p."+field.Name) {
			t.Errorf("wires.go does not pass on %s", field.Name)
		}
	}
}
