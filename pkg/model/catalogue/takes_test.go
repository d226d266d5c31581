package catalogue_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

func TestTakes(t *testing.T) {
	c, err := catalogue.Default().Extend("own.yaml", []byte("models: [{ref: 'groq:eyes', window: 1, images: true, pdf: true}, {ref: 'openai:blind', window: 1, images: false, pdf: false}]"))
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string][2]bool{
		"openai:gpt-6-astra": {true, true}, "openai:unknown": {true, true}, "openai:o3-mini": {}, "openai:blind": {}, "anthropic:claude-opus-5-5": {true, true},
		"bedrock:anthropic.claude-opus-5-5": {true, true}, "azure:gpt-4": {}, "groq:unknown": {}, "groq:eyes": {true, true}, "deepseek:deepseek-flash": {true, false},
		"deepseek:deepseek-v4-pro": {}, "xai:grok-4.3": {true, true}, "xai:grok-4.5": {true, false}, "script:a.yaml": {true, true}, "nobody:x": {}, "": {},
	} {
		if images, pdf := c.Takes(ref); images != want[0] || pdf != want[1] {
			t.Errorf("%s takes images %v and PDF %v, want %v", ref, images, pdf, want)
		}
	}
}
