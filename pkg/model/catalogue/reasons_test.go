package catalogue_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

func TestReasons(t *testing.T) {
	for ref, want := range map[string]bool{
		"openai:gpt-5.5": true, "openai:gpt-4o": false, "openai:unheard-of": false, "anthropic:claude-opus-5-5": true,
		"deepseek:unheard-of": true, "nowhere:model": false, "script:a.yaml": false, "": false,
	} {
		if got := catalogue.Default().Reasons(ref); got != want {
			t.Errorf("%q reasons: %v, want %v", ref, got, want)
		}
	}
}
