package gatewayhttp_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
)

// TestPromptsAndProfilesOverHTTP: a prompt is set, listed and restored; a profile is shown and reset.
func TestPromptsAndProfilesOverHTTP(t *testing.T) {
	b := newBed(t)
	builtIn := len(quality.PromptIDs())
	if list := b.get("/v1/prompts").object(t)["prompts"].([]any); len(list) != builtIn {
		t.Errorf("%d prompts: %v", len(list), list)
	}
	prompt := func(a answer) map[string]any {
		t.Helper()
		p, _ := a.object(t)["prompt"].(map[string]any)
		if a.status != http.StatusOK || p == nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return p
	}
	set := prompt(b.do(http.MethodPut, "/v1/prompts/healing?tier=gold", `{"text":"Do it again."}`))
	if set["text"] != "Do it again." || set["tier"] != "gold" || set["digest"] != quality.PromptDigest("Do it again.") || set["set_time"] == nil {
		t.Errorf("%v", set)
	}
	if list := b.get("/v1/prompts").object(t)["prompts"].([]any); len(list) != builtIn+1 {
		t.Errorf("%d prompts: %v", len(list), list)
	}
	text, _ := quality.BuiltIn(quality.PromptHealing)
	if restored := prompt(b.do(http.MethodDelete, "/v1/prompts/healing?tier=gold", "")); restored["text"] != text || restored["digest"] != quality.PromptDigest(text) {
		t.Errorf("%v", restored)
	}
	figures, _ := b.get("/v1/profile?profile=reports").object(t)["figures"].(map[string]any)
	if figures["maturity"] != "new" {
		t.Errorf("%v", figures)
	}
	if a := b.do(http.MethodDelete, "/v1/profile?profile=reports", ""); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestMistakesWithPromptsNameTheField, and change nothing.
func TestMistakesWithPromptsNameTheField(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct{ method, path, body, field, words string }{
		{http.MethodPut, "/v1/prompts/heal", `{"text":"x"}`, "id", "must be one of"},
		{http.MethodPut, "/v1/prompts/healing", `{"text":" "}`, "text", "missing: DELETE restores the built-in prompt"},
		{http.MethodPut, "/v1/prompts/healing", `{}`, "text", "missing"},
		{http.MethodPut, "/v1/prompts/healing", `{"texts":"x"}`, "texts", "text"},
		{http.MethodPut, "/v1/prompts/healing?tier=a%20b", `{"text":"x"}`, "tier", "must match"},
		{http.MethodPut, "/v1/prompts/healing", `{"text":"` + strings.Repeat("x", 16385) + `"}`, "text", "at most 16384"},
		{http.MethodGet, "/v1/profile", "", "profile", "must be the absolute path"},
		{http.MethodDelete, "/v1/profile", "", "profile", "must be the absolute path"},
	} {
		a := b.do(c.method, c.path, c.body)
		if p := a.problem(t); a.status != http.StatusBadRequest || p["field"] != c.field || !strings.Contains(p["message"].(string), c.words) {
			t.Errorf("%s %s %.40s: %d %v", c.method, c.path, c.body, a.status, p)
		}
	}
	if list := b.get("/v1/prompts").object(t)["prompts"].([]any); len(list) != len(quality.PromptIDs()) {
		t.Errorf("%v", list)
	}
}

func TestRoutesOfPromptsNeedTheRightsOfTheToken(t *testing.T) {
	b := newBed(t)
	path := filepath.Join(t.TempDir(), "tokens")
	b.must(os.WriteFile(path, []byte("token-without-rights * may=none roots=/srv/a\ntoken-with-the-right * may=prompts\n"), 0o600))
	file, err := access.Open(path, slog.New(slog.DiscardHandler))
	b.must(err)
	guard := access.NewGuard(file)
	inside := gatewayhttp.New(gatewayhttp.Config{Gateway: harnessv1.NewGatewayServiceClient(guard.Confine(b.conn))})
	server := httptest.NewServer(guard.HTTP(inside, nil))
	defer server.Close()
	b.http.Close()
	b.http = server
	for _, c := range []struct {
		method, path, body string
		with, without      int
	}{
		{http.MethodGet, "/v1/prompts", "", 200, 200},
		{http.MethodPut, "/v1/prompts/healing", `{"text":"x"}`, 200, 403},
		{http.MethodDelete, "/v1/prompts/healing", "", 200, 403},
		{http.MethodGet, "/v1/profile?profile=/srv/a/b", "", 200, 200},
		{http.MethodGet, "/v1/profile?profile=/srv/b", "", 200, 403},
		{http.MethodDelete, "/v1/profile?profile=/srv/a", "", 200, 403},
	} {
		for token, want := range map[string]int{"token-with-the-right": c.with, "token-without-rights": c.without} {
			if a := b.do(c.method, c.path, c.body, "Authorization", "Bearer "+token); a.status != want {
				t.Errorf("%s %s with %s: %d %s", c.method, c.path, token, a.status, a.body)
			}
		}
	}
}
