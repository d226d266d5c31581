package openai_test

import (
	"reflect"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
)

// elsewhere are the switches of Config that are no quirk of a service's wire, with the reason.
var elsewhere = map[string]string{
	"Endpoint.Own":     "describes the address, for the texts of errors",
	"Endpoint.Schemas": "an addition to requests of jobs; a service without it gets the prompt alone",
}

// TestEachQuirkHasAService: each switch of Config is set for one of services at least, so that the
// suite of providers runs against a server that has the quirk.
func TestEachQuirkHasAService(t *testing.T) {
	for name, set := range switches(reflect.TypeFor[openai.Config](), "") {
		if _, ok := elsewhere[name]; ok {
			continue
		}
		used := false
		for _, s := range services() {
			used = used || set(reflect.ValueOf(s.config))
		}
		if !used {
			t.Errorf("Config.%s: no service in temper_test.go sets it: add a service whose server refuses a request without it", name)
		}
	}
}

// switches returns the fields of a type that are true or false, also those of fields, each with a
// function that reports whether a value sets it.
func switches(of reflect.Type, within string) map[string]func(reflect.Value) bool {
	found := map[string]func(reflect.Value) bool{}
	for i := range of.NumField() {
		field := of.Field(i)
		switch field.Type.Kind() {
		case reflect.Bool:
			found[within+field.Name] = func(v reflect.Value) bool { return v.Field(i).Bool() }
		case reflect.Struct:
			for name, set := range switches(field.Type, within+field.Name+".") {
				found[name] = func(v reflect.Value) bool { return set(v.Field(i)) }
			}
		default:
		}
	}
	return found
}
