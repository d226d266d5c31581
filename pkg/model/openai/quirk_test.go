package openai_test

import (
	"reflect"
	"slices"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// elsewhere are the switches of Config that are no quirk of a service's wire, with the reason.
var elsewhere = map[string]string{
	"Endpoint.Own":     "describes the address, for the texts of errors",
	"Endpoint.Schemas": "an addition to requests of jobs; a service without it gets the prompt alone",
}

// TestEachQuirkHasAService: each switch of Config is set for one of services at least, so that the
// suite of providers runs against a server that has the quirk.
func TestEachQuirkHasAService(t *testing.T) {
	for name, quirk := range switches(reflect.TypeFor[openai.Config](), "") {
		if _, ok := elsewhere[name]; ok {
			continue
		}
		used := false
		for _, s := range services() {
			used = used || quirk.set(reflect.ValueOf(s.config))
		}
		if !used {
			t.Errorf("Config.%s: no service in temper_test.go sets it: add a service whose server refuses a request without it", name)
		}
	}
}

// additions are the switches that add a member to requests which their service takes and does not demand.
var additions = []string{"CacheKey", "Reasoning.Chunks"}

// TestEachQuirkIsNeeded talks with each service without one of its switches: its server refuses a
// request. Otherwise the service shows nothing about the switch.
func TestEachQuirkIsNeeded(t *testing.T) {
	for service, s := range services() {
		for name, quirk := range switches(reflect.TypeFor[openai.Config](), "") {
			if _, ok := elsewhere[name]; ok || !quirk.set(reflect.ValueOf(s.config)) || slices.Contains(additions, name) {
				continue
			}
			t.Run(service+"/"+name, func(t *testing.T) {
				without := s
				quirk.clear(reflect.ValueOf(&without.config).Elem())
				server, p := without.start(t, script(true)...)
				k := &talk{T: t, req: modeltest.Conversation(true), p: p, server: server}
				k.req.Effort = harnessv1.Effort_EFFORT_HIGH
				for turn := range 15 {
					if _, err := k.try(turn); err != nil {
						return
					}
				}
				t.Error("the server refuses no request")
			})
		}
	}
}

// quirk is a switch of a configuration.
type quirk struct {
	set   func(reflect.Value) bool
	clear func(reflect.Value)
}

// switches returns the fields of a type that are true or false, also those of fields.
func switches(of reflect.Type, within string) map[string]quirk {
	found := map[string]quirk{}
	for i := range of.NumField() {
		field := of.Field(i)
		switch field.Type.Kind() {
		case reflect.Bool:
			found[within+field.Name] = quirk{
				func(v reflect.Value) bool { return v.Field(i).Bool() },
				func(v reflect.Value) { v.Field(i).SetBool(false) },
			}
		case reflect.Struct:
			for name, inner := range switches(field.Type, within+field.Name+".") {
				found[name] = quirk{
					func(v reflect.Value) bool { return inner.set(v.Field(i)) },
					func(v reflect.Value) { inner.clear(v.Field(i)) },
				}
			}
		default:
		}
	}
	return found
}
