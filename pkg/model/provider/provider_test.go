package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/modeltest"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestOpenRefuses(t *testing.T) {
	key := environment("OPENAI_API_KEY", "sk-secret")
	for _, c := range []struct {
		ref  string
		env  func(string) string
		says []string
	}{
		{"", environment(), []string{"openai:NAME", "script:FILE", "OPENAI_API_KEY", "OPENAI_BASE_URL"}},
		{"", environment("OPENAI_API_KEY", "  "), []string{"OPENAI_API_KEY"}},
		{"openai:gpt-5", environment(), []string{"OPENAI_API_KEY is not set"}},
		{"openai:gpt-5", environment("OPENAI_BASE_URL", "https://eu.api.openai.com/v1"), []string{"OPENAI_API_KEY is not set"}},
		{"openai:gpt-5", environment("OPENAI_BASE_URL", "localhost:8000"), []string{"OPENAI_BASE_URL", "/v1"}},
		{"gpt-5", key, []string{`"gpt-5" names no provider`, "openai:NAME or script:FILE"}},
		{"anthropic:claude", key, []string{`no provider "anthropic"`, "openai:NAME or script:FILE"}},
		{"replay:a.json", key, []string{`no provider "replay"`, "openai:NAME or script:FILE"}},
		{"script:", key, []string{"script:FILE"}},
		{"script:none.yaml", key, []string{"none.yaml: "}},
	} {
		_, _, err := provider.Open(c.ref, c.env)
		if err == nil || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%q: error %v, want one line without the key", c.ref, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q: error %q does not say %q", c.ref, err, s)
			}
		}
	}
}

func TestOpen(t *testing.T) {
	s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "hello"} })
	local := environment("OPENAI_BASE_URL", s.BaseURL()+" ")
	file := filepath.Join(t.TempDir(), "a:b.yaml")
	if err := os.WriteFile(file, []byte("turns: [{text: hello}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ref        string
		env        func(string) string
		name, says string
	}{
		{"openai:some/model:7b", local, "some/model:7b", "some/model:7b"},
		{"openai:", local, "", "test-model"},
		{"", local, "", "test-model"},
		{"script:" + file, environment(), file, file},
	} {
		p, name, err := provider.Open(c.ref, c.env)
		if err != nil || name != c.name {
			t.Errorf("%q: %q, %v: want name %q", c.ref, name, err, c.name)
			continue
		}
		req := modeltest.Conversation(true)
		req.Model = name
		resp, err := p.Complete(t.Context(), req, nil)
		if err != nil || resp.Text != "hello" || resp.Model != c.says {
			t.Errorf("%q answered %+v, %v", c.ref, resp, err)
		}
	}
}

func TestOpenWithKey(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Reply{})
	s.Key = "k-1"
	p, name, err := provider.Open("openai:m", environment("OPENAI_BASE_URL", s.BaseURL(), "OPENAI_API_KEY", "k-1\n"))
	if err != nil {
		t.Fatal(err)
	}
	req := modeltest.Conversation(false)
	req.Model = name
	if _, err := p.Complete(t.Context(), req, nil); err != nil {
		t.Fatal(model.AsError(err).Message)
	}
}

func TestPrice(t *testing.T) {
	usage := &harnessv1.Usage{InputTokens: 1_000_000}
	for ref, want := range map[string]uint64{"openai:gpt-4o": 2_500_000, "openai:local": 0, "script:a.yaml": 0} {
		if got := provider.Price(ref, usage); got != want {
			t.Errorf("%s costs %d, want %d", ref, got, want)
		}
	}
}
