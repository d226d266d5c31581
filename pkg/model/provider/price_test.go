package provider

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

// TestPriced: the catalogue has prices of some models, a file can add others, and a scripted
// model costs nothing.
func TestPriced(t *testing.T) {
	extended, err := catalogue.Default().Extend("models.yaml", []byte("models: [{ref: openai:mine, window: 100, input: 1, output: 2}, {ref: openai:small, window: 100}]"))
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]bool{
		"openai:gpt-4o": true, "openai:mine": true, "openai:small": false, "openai:unknown": false, "openai:": false, "script:a.yaml": true, "": false,
	} {
		if got := Priced(extended, ref); got != want {
			t.Errorf("%q: %t, want %t", ref, got, want)
		}
	}
}
