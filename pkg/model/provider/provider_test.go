package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
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

func TestOpenRejects(t *testing.T) {
	key := environment("OPENAI_API_KEY", "sk-secret")
	for _, c := range []struct {
		ref  string
		env  func(string) string
		says []string
	}{
		{"", environment(), []string{"openai:NAME", "anthropic:NAME", "script:FILE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}},
		{"", environment("OPENAI_API_KEY", "  "), []string{"OPENAI_API_KEY"}},
		{"openai:gpt-5", environment(), []string{"OPENAI_API_KEY is not set"}},
		{"openai:gpt-5", environment("OPENAI_BASE_URL", "https://eu.api.openai.com/v1"), []string{"OPENAI_API_KEY is not set"}},
		{"openai:gpt-5", environment("OPENAI_BASE_URL", "localhost:8000"), []string{"OPENAI_BASE_URL", "/v1"}},
		{"gpt-5", key, []string{`"gpt-5" names no provider`, "such as openai:gpt-5", "script:FILE", "openai, anthropic, deepseek"}},
		{"claude-opus-5-5", key, []string{`"claude-opus-5-5" names no provider`, "such as anthropic:claude-opus-5-5"}},
		{"anthropic:claude", key, []string{"ANTHROPIC_API_KEY is not set", "ANTHROPIC_BASE_URL"}},
		{"anthropic:claude", environment("ANTHROPIC_BASE_URL", "https://eu.anthropic.com"), []string{"ANTHROPIC_API_KEY is not set"}},
		{"anthropic:claude", environment("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/v1"), []string{"ANTHROPIC_BASE_URL", "must not include the version path /v1"}},
		{"anthropic:claude", environment("ANTHROPIC_API_KEY", "sk-secret\nx"), []string{"ANTHROPIC_API_KEY", "line break"}},
		{"replay:a.json", key, []string{`unknown provider "replay"; expected script or one of openai, anthropic, deepseek`, "catalogue file"}},
		{"opnai:gpt-5", key, []string{`unknown provider "opnai" (did you mean openai?)`}},
		{"deepseek:x", key, []string{"DEEPSEEK_API_KEY is not set: set it, or DEEPSEEK_BASE_URL"}},
		{"azure:x", environment("AZURE_OPENAI_API_KEY", "sk-secret"), []string{"AZURE_BASE_URL is not set: set it to the address of azure"}},
		{"azure:x", environment("AZURE_BASE_URL", "https://a.openai.azure.com/openai/v1"), []string{"AZURE_OPENAI_API_KEY is not set: set it to the key of azure"}},
		{"bedrock:x", environment("AWS_BEARER_TOKEN_BEDROCK", "sk-secret"), []string{"AWS_REGION is not set: set it, or BEDROCK_BASE_URL"}},
		{"bedrock:x", environment("AWS_REGION", "eu-west-1"), []string{"AWS_BEARER_TOKEN_BEDROCK is not set"}},
		{"bedrock:x", environment("AWS_REGION", "a b", "AWS_BEARER_TOKEN_BEDROCK", "sk-secret"), []string{"BEDROCK_BASE_URL", "must be an http or https address"}},
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
	claude := environment("ANTHROPIC_BASE_URL", s.MessagesURL()+" ")
	both := environment("OPENAI_BASE_URL", s.BaseURL(), "ANTHROPIC_API_KEY", "k")
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
		{"", both, "", "test-model"},
		{"", claude, "", "test-model"},
		{"anthropic:", claude, "", "test-model"},
		{"anthropic:claude-opus-5-5", claude, "claude-opus-5-5", "claude-opus-5-5"},
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
	usage := &harnessv1.Usage{InputTokens: 1_000_000, CacheWriteTokens: 1_000_000}
	for _, c := range []struct {
		ref, answered string
		want          uint64
	}{
		{"openai:gpt-4o", "gpt-4o-2024-08-06", 2_500_000},
		{"openai:", "gpt-4o-2024-08-06", 2_500_000},
		{"anthropic:claude-haiku-4-5", "", 1_250_000},
		{"openai:local", "local", 0},
		{"openai:", "", 0},
		{"script:a.yaml", "", 0},
	} {
		if got := provider.Price(catalogue.Default(), c.ref, &model.Response{Usage: usage, Model: c.answered}); got != c.want {
			t.Errorf("%s, answered by %q, costs %d, want %d", c.ref, c.answered, got, c.want)
		}
	}
}

func TestAnthropicUsesTheCataloguesMaximumOutput(t *testing.T) {
	var maxTokens int
	s := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		maxTokens = r.MaxTokens
		return modeltest.Reply{}
	})
	own, err := catalogue.Default().Extend("own.yaml", []byte("models: [{ref: anthropic:own, window: 9000, max_output: 777}]"))
	if err != nil {
		t.Fatal(err)
	}
	p, name, err := provider.OpenWith(own, "anthropic:own", environment("ANTHROPIC_BASE_URL", s.MessagesURL()))
	if err != nil {
		t.Fatal(err)
	}
	req := modeltest.Conversation(true)
	req.Model = name
	if _, err := p.Complete(t.Context(), req, nil); err != nil || maxTokens != 777 {
		t.Errorf("max_tokens %d (%v), want 777", maxTokens, err)
	}
}
