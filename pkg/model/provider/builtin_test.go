package provider_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// gateway forwards requests to a modeltest.Server, under the path of a provider's own
// address, and records them.
type gateway struct {
	server *httptest.Server
	prefix string

	mu       sync.Mutex
	received []*http.Request
}

// newGateway starts a gateway to s for addresses with the path prefix.
func newGateway(t *testing.T, s *modeltest.Server, prefix string, messages bool) *gateway {
	g := &gateway{prefix: prefix}
	to := s.BaseURL()
	if messages {
		to = s.MessagesURL()
	}
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		r.Out.URL.Path = target.Path + strings.TrimPrefix(r.In.URL.Path, prefix)
	}}
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.received = append(g.received, r.Clone(t.Context()))
		g.mu.Unlock()
		if !strings.HasPrefix(r.URL.Path, prefix+"/") {
			http.NotFound(w, r)
			return
		}
		// Else the body of the request is closed with the first byte of the answer, while the proxy reads it.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(g.server.Close)
	return g
}

func (g *gateway) address() string { return g.server.URL + g.prefix }

// last returns the path and the header of the last request.
func (g *gateway) last(t *testing.T) (string, http.Header) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.received) == 0 {
		t.Fatal("no request arrived")
	}
	r := g.received[len(g.received)-1]
	return r.URL.Path, r.Header
}

func conversation(name string) *model.Request {
	req := modeltest.Conversation(true)
	req.Model = name
	return req
}

func complete(t *testing.T, p model.Provider, name string) (*model.Response, error) {
	t.Helper()
	return p.Complete(t.Context(), conversation(name), func(model.Delta) {})
}

// TestBuiltIn opens each embedded provider with its variables: the request has its path
// below the provider's own, and its key in its header.
func TestBuiltIn(t *testing.T) {
	const key = "sk-built-in"
	for _, c := range []struct {
		name, addressVariable, keyVariable string
		path, header, value                string
	}{
		{"openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "/v1/messages", "X-Api-Key", key},
		{"deepseek", "DEEPSEEK_BASE_URL", "DEEPSEEK_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"moonshot", "MOONSHOT_BASE_URL", "MOONSHOT_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"zai", "ZAI_BASE_URL", "ZAI_API_KEY", "/api/paas/v4/chat/completions", "Authorization", "Bearer " + key},
		{"qwen", "QWEN_BASE_URL", "DASHSCOPE_API_KEY", "/compatible-mode/v1/chat/completions", "Authorization", "Bearer " + key},
		{"mistral", "MISTRAL_BASE_URL", "MISTRAL_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"groq", "GROQ_BASE_URL", "GROQ_API_KEY", "/openai/v1/chat/completions", "Authorization", "Bearer " + key},
		{"xai", "XAI_BASE_URL", "XAI_API_KEY", "/v1/responses", "Authorization", "Bearer " + key},
		{"google", "GOOGLE_BASE_URL", "GEMINI_API_KEY", "/v1beta/openai/chat/completions", "Authorization", "Bearer " + key},
		{"openrouter", "OPENROUTER_BASE_URL", "OPENROUTER_API_KEY", "/api/v1/chat/completions", "Authorization", "Bearer " + key},
		{"ollama", "OLLAMA_BASE_URL", "OLLAMA_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"vllm", "VLLM_BASE_URL", "VLLM_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"llamacpp", "LLAMACPP_BASE_URL", "LLAMA_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"llama.cpp", "LLAMACPP_BASE_URL", "LLAMA_API_KEY", "/v1/chat/completions", "Authorization", "Bearer " + key},
		{"azure", "AZURE_BASE_URL", "AZURE_OPENAI_API_KEY", "/openai/v1/responses", "Api-Key", key},
		{"bedrock", "BEDROCK_BASE_URL", "AWS_BEARER_TOKEN_BEDROCK", "/anthropic/v1/messages", "X-Api-Key", key},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "hello"} })
			messages := strings.HasSuffix(c.path, "/messages")
			prefix := path.Dir(c.path)
			if messages || strings.HasSuffix(c.path, "/chat/completions") {
				prefix = path.Dir(prefix)
			}
			g := newGateway(t, s, strings.TrimSuffix(prefix, "/"), messages)
			p, name, err := provider.Open(c.name+":some/model", environment(c.addressVariable, g.address(), c.keyVariable, " "+key+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := complete(t, p, name)
			if err != nil || resp.Text != "hello" || resp.Model != "some/model" {
				t.Fatalf("answered %+v, %v", resp, err)
			}
			at, header := g.last(t)
			if at != c.path || header.Get(c.header) != c.value {
				t.Errorf("the path is %s and %s is %q, want %s and %q", at, c.header, header.Get(c.header), c.path, c.value)
			}
			for _, other := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
				if other != c.header && header.Get(other) != "" {
					t.Errorf("%s is sent too", other)
				}
			}
			if err := p.(interface{ Close() error }).Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVariables checks the names of the variables, and that TestBuiltIn is complete.
func TestVariables(t *testing.T) {
	all := catalogue.Default().Providers()
	if len(all) != 16 { // TestBuiltIn has each of them, and one alias
		t.Errorf("%d providers are embedded; adapt TestBuiltIn", len(all))
	}
	for _, p := range all {
		if p.AddressVariable == "" || p.KeyVariable == "" {
			t.Errorf("%s has no variable for its address or its key", p.Name)
		}
		if want := strings.ToUpper(p.Name) + "_BASE_URL"; p.AddressVariable != want {
			t.Errorf("the variable of %s is %s, want %s", p.Name, p.AddressVariable, want)
		}
	}
}

// TestKeyIsRequired opens each provider without a key: only the own addresses of services
// that are not local require one.
func TestKeyIsRequired(t *testing.T) {
	for _, name := range []string{"ollama", "vllm", "llamacpp", "llama.cpp"} {
		if _, _, err := provider.Open(name+":m", environment()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range catalogue.Default().Providers() {
		if _, _, err := provider.Open(p.Name+":m", environment()); err == nil && !p.KeyOptional {
			t.Errorf("%s opens without a key", p.Name)
		}
		base := environment(p.AddressVariable, "http://127.0.0.1:9/x")
		if _, _, err := provider.Open(p.Name+":m", base); err != nil {
			t.Errorf("%s needs a key at a compatible server: %v", p.Name, err)
		}
	}
}
