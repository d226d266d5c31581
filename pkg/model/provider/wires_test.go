package provider_test

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func bodyOf(t *testing.T, c *catalogue.Catalogue, ref string, change func(*model.Request)) string {
	t.Helper()
	var sent string
	s := restrict(t, nil)
	s.inspect = func(body []byte) { sent = string(body) }
	described, _ := c.ProviderOf(ref)
	base := s.URL + "/v1"
	if described.Speaks(catalogue.WireMessages) {
		base = s.URL
	}
	p, name, err := provider.OpenWith(c, ref, environment(described.AddressVariable, base))
	if err != nil {
		t.Fatal(err)
	}
	req := conversation(name)
	change(req)
	_, _ = p.Complete(t.Context(), req, nil)
	if sent == "" {
		t.Fatalf("%s: no request arrived", ref)
	}
	return sent
}

func effort(e harnessv1.Effort) func(*model.Request) {
	return func(r *model.Request) { r.Effort = e }
}

// TestSettingsOfModels: the catalogue's entry of a model changes the requests to it.
func TestSettingsOfModels(t *testing.T) {
	const encrypted = "reasoning.encrypted_content"
	none, high := effort(harnessv1.Effort_EFFORT_NONE), effort(harnessv1.Effort_EFFORT_HIGH)
	for _, c := range []struct {
		ref     string
		change  func(*model.Request)
		has, no string
	}{
		{"azure:gpt-5", high, encrypted, ""},
		{"azure:gpt-4o", high, "", encrypted},
		{"anthropic:claude-sonnet-5-5", none, `"thinking":{"type":"disabled"}`, ""},
		{"anthropic:claude-sonnet-5-5", high, `"thinking":{"type":"adaptive"`, ""},
		{"anthropic:claude-opus-5-5", none, `"thinking":{"type":"adaptive"`, "disabled"},
		{"bedrock:anthropic.claude-opus-5-5", none, `"thinking":{"type":"adaptive"`, "disabled"},
		{"anthropic:claude-haiku-4-5", high, `"thinking":{"type":"enabled","budget_tokens":`, ""},
		{"anthropic:unknown", high, "", `"thinking"`},
	} {
		body := bodyOf(t, catalogue.Default(), c.ref, c.change)
		if !strings.Contains(body, c.has) || c.no != "" && strings.Contains(body, c.no) {
			t.Errorf("the request to %s has not %q, or has %q: %s", c.ref, c.has, c.no, body)
		}
	}
}

func TestMembersOfProviders(t *testing.T) {
	c := extended(t, `providers:
  - {name: corp, wire: chat, address: "http://other.example/v1", address_variable: CORP_BASE_URL, cache_key: true, body: {route: fast}}
  - {name: res, wire: responses, address: "http://other.example/v1", address_variable: RES_BASE_URL, body: {route: fast}}
  - {name: mes, wire: messages, address: "http://other.example", address_variable: MES_BASE_URL, body: {route: fast}}
`)
	for _, ref := range []string{"corp:m", "res:m", "mes:m"} {
		if body := bodyOf(t, c, ref, func(*model.Request) {}); !strings.Contains(body, `"route":"fast"`) {
			t.Errorf("the request to %s has not the additional member: %s", ref, body)
		}
	}
	key := func(r *model.Request) { r.CacheKey = "run-1" }
	if body := bodyOf(t, c, "corp:m", key); strings.Contains(body, "prompt_cache_key") {
		t.Errorf("a compatible server receives %s", body)
	}
	own := extended(t, `providers: [{name: corp, wire: chat, address: "http://other.example", address_variable: CORP_BASE_URL, domains: [127.0.0.1], cache_key: true}]`)
	if body := bodyOf(t, own, "corp:m", key); !strings.Contains(body, `"prompt_cache_key":"run-1"`) {
		t.Errorf("the provider's own address receives %s", body)
	}
}

// TestModelReadsAnother: the reasoning of one model goes back to another that reads it.
func TestModelReadsAnother(t *testing.T) {
	for _, c := range []struct {
		provider, prefix, next string
		want                   bool
	}{
		{"anthropic", "", "claude-opus-5-5", true}, {"anthropic", "", "claude-sonnet-5-5", false},
		{"bedrock", "anthropic.", "claude-opus-5-5", true}, {"bedrock", "anthropic.", "claude-fable-5-1", false},
	} {
		s := modeltest.NewServer(t, modeltest.Reply{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "A thought."}}, {Text: "hello"}}}, modeltest.Reply{Text: "hello"})
		p, _, err := provider.Open(c.provider+":", environment(providerNamed(t, c.provider).AddressVariable, s.MessagesURL()))
		if err != nil {
			t.Fatal(err)
		}
		req := conversation(c.prefix + "claude-opus-5")
		req.ShowReasoning = true
		resp, err := p.Complete(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		modeltest.Answer(req, resp, nil)
		req.Model = c.prefix + c.next
		if _, err := p.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		last := string(s.Requests()[len(s.Requests())-1].Body)
		if got := strings.Contains(last, `"signature"`); got != c.want {
			t.Errorf("%s receives the thinking of %sclaude-opus-5: %v, want %v: %s", req.Model, c.prefix, got, c.want, last)
		}
	}
}
