package provider_test

import (
	"encoding/base64"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

// TestMedia: an image is sent on each wire to a model that takes it, and to no other.
func TestMedia(t *testing.T) {
	const data = "an image, as far as a server of a test looks"
	for ref, want := range map[string]bool{
		"openai:unknown": true, "openai:gpt-3.5-turbo": false, "openai:gpt-5.4": true, "anthropic:unknown": true, "groq:unknown": false,
		"azure:gpt-4": false, "deepseek:deepseek-flash": true,
	} {
		p, name := catalogue.Default().ProviderOf(ref)
		var sent string
		s := restrict(t, nil)
		s.inspect = func(body []byte) { sent = string(body) }
		base := s.URL + "/v1"
		if p.Speaks(catalogue.WireMessages) {
			base = s.URL
		}
		opened, _, err := provider.Open(ref, environment(p.AddressVariable, base))
		if err != nil {
			t.Fatal(err)
		}
		req := conversation(name)
		req.Messages[1].Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: media.PNG, Width: 1, Height: 1, Data: []byte(data)}}}}
		_, _ = opened.Complete(t.Context(), req, nil)
		if got := strings.Contains(sent, base64.StdEncoding.EncodeToString([]byte(data))); got != want || sent == "" {
			t.Errorf("%s receives the image: %v, want %v", ref, got, want)
		}
	}
}
