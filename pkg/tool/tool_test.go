package tool

import (
	"strings"
	"testing"
)

// greet is the Run type of a place where tools return text.
type greet func(arguments string) string

func TestRegistryFindsToolsWithTheirRun(t *testing.T) {
	hello := Tool[greet]{Spec: spec("hello", `{}`), Run: func(arguments string) string { return "hello " + arguments }}
	elsewhere := Tool[greet]{Spec: spec("elsewhere", `{}`)}
	r, err := NewRegistry(hello, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Specs(); len(got) != 2 || got[0] != hello.Spec || got[1] != elsewhere.Spec {
		t.Fatalf("Specs() = %v, want hello, elsewhere", got)
	}
	if found, ok := r.Find("hello"); !ok || found.Spec != hello.Spec || found.Run("you") != "hello you" {
		t.Fatalf("Find(hello) = %v, %v", found, ok)
	}
	if found, ok := r.Find("elsewhere"); !ok || found.Run != nil {
		t.Fatalf("Find(elsewhere) = %v, %v, want a tool without Run", found, ok)
	}
	if found, ok := r.Find("unknown"); ok {
		t.Fatalf("Find(unknown) = %v", found)
	}
}

func TestNewRegistryRejectsInvalidTools(t *testing.T) {
	for want, tools := range map[string][]Tool[greet]{
		"duplicate tool":    {{Spec: spec("a", `{}`)}, {Spec: spec("a", `{}`)}},
		"does not match":    {{}},
		"parameters_schema": {{Spec: spec("a", `[]`)}},
	} {
		if _, err := NewRegistry(tools...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestArgumentsDecodesIntoTheStructOfATool(t *testing.T) {
	type lines struct {
		Path  string  `json:"path"`
		Limit float64 `json:"limit"`
	}
	for text, want := range map[string]lines{
		``:                         {},
		`{}`:                       {},
		`{"path":"a","limit":2.0}`: {"a", 2},
	} {
		if got, err := Arguments[lines](text); err != nil || got != want {
			t.Errorf("Arguments(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	if _, err := Arguments[lines](`{"path":1}`); err == nil {
		t.Error("Arguments accepts a number for a string")
	}
}
