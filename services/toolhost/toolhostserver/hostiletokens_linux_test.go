package toolhostserver

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	grpcstatus "google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/oauthtest"
)

// TestHostileAnswersToACode: the answer of an authorization server to a code is a bearer token, or the sign-in fails in one
// line without it and stores nothing.
func TestHostileAnswersToACode(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	site := protected(t, filepath.Join(h.dir, "lines"))
	near := bystander(t)
	is := func(body string) func(*oauthtest.Settings) {
		return instead("/token", responds(200, "application/json", body))
	}
	for name, c := range map[string]struct {
		change func(*oauthtest.Settings)
		want   string
	}{
		"at this machine":            {publishes("token_endpoint", near+"/token"), "only the ports 80 and 443"},
		"at a link-local host":       {publishes("token_endpoint", "https://metadata.google.internal./"), "cannot be"},
		"a page":                     {instead("/token", responds(200, "text/html", "<html>")), "does not return a bearer token"},
		"a list":                     {is(`[]`), "does not return a bearer token"},
		"a text":                     {is(`"token"`), "does not return a bearer token"},
		"nothing":                    {is(``), "does not return a bearer token"},
		"no token":                   {is(`{"refresh_token": "` + site.Secret("refresh-") + `"}`), "does not return a bearer token"},
		"an empty token":             {is(`{"access_token": ""}`), "does not return a bearer token"},
		"a number":                   {is(`{"access_token": 5}`), "does not return a bearer token"},
		"a list as a token":          {is(`{"access_token": ["a"]}`), "does not return a bearer token"},
		"another kind":               {is(`{"access_token": "` + site.Secret("access-") + `", "token_type": "mac"}`), "does not return a bearer token"},
		"a header in the token":      {is(`{"access_token": "a\r\nX-Other: b"}`), "does not return a bearer token"},
		"an escape in the token":     {is(`{"access_token": "a\u001b[2J"}`), "does not return a bearer token"},
		"a mark in the token":        {is(`{"access_token": "a\u202eb"}`), "does not return a bearer token"},
		"a long token":               {is(`{"access_token": "` + strings.Repeat("a", 100_000) + `"}`), "does not return a bearer token"},
		"a long refresh token":       {is(`{"access_token": "a", "refresh_token": "` + strings.Repeat("a", 100_000) + `"}`), "does not return a bearer token"},
		"no end":                     {instead("/token", endless), "does not return a bearer token"},
		"a redirect":                 {instead("/token", leads("/elsewhere")), "status 307"},
		"a redirect with the code":   {instead("/token", leads("http://%zzSECRET")), "cannot be used"},
		"a redirect with it, longer": {instead("/token", leads("http://%zz"+strings.Repeat("x", 270)+"SECRET")), "cannot be used"},
		"an error with the code": {instead("/token", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error": "invalid_grant", "error_description": "%s%s %s"}`, strings.Repeat("x", 160), r.FormValue("code"), url.QueryEscape(r.FormValue("code")))
		}), "invalid_grant"},
		"a list as an error": {instead("/token", responds(400, "application/json", `{"error": [1]}`)), "status 400"},
		"another protocol": {instead("/token", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "SSH-2.0-\x1b[2J"+strings.Repeat("x", 100_000)+"\r\n\r\n")
				_ = conn.Close()
			}
		}), "cannot be used"},
	} {
		site.Change(c.change)
		start, err := h.startSignIn(webServer(site))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		q := site.Agree(start.GetAuthorizationUrl()).Query()
		q.Set("code", q.Get("code")+"/+=") // in a form it has another spelling
		if _, err = h.finish(q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.600v, want %q", name, err, c.want)
			continue
		}
		checkMessage(t, name, grpcstatus.Convert(grpcError(err)).Message(), site)
		site.Change(func(s *oauthtest.Settings) { *s = oauthtest.Settings{} })
		if files, _ := filepath.Glob(filepath.Join(h.config.Dir, "servers", "tokens", "*.json")); len(files) != 0 {
			t.Fatalf("%s: %v was stored", name, files)
		}
	}
	for life, most := range map[string]time.Duration{
		`-5`: 0, `0`: 0, `"NaN"`: 0, `null`: 0, `[1]`: 0, `{"a": 1}`: 0, `1e400`: 0, `"soon"`: 0, `""`: 0, `1e-300`: 0,
		`1e300`: 10 * 366 * 24 * time.Hour, `"Inf"`: 10 * 366 * 24 * time.Hour, `9223372036854775807`: 10 * 366 * 24 * time.Hour, `"3600"`: time.Hour,
	} {
		site.Change(is(`{"access_token": "a", "expires_in": ` + life + `}`))
		start, err := h.startSignIn(webServer(site))
		if err != nil {
			t.Fatal(err)
		}
		state, err := h.finish(site.Agree(start.GetAuthorizationUrl()).Query())
		if valid := state.GetValid().AsDuration(); err != nil || !state.GetSignedIn() || valid < 0 || valid > most || most > 0 && valid == 0 {
			t.Errorf("expires_in %s: %v, %v", life, state, err)
		}
	}
}

// TestHostileRenewals: each answer of an authorization server to a refresh token ends the call in time, without a secret in
// its result, and does not fill the disk.
func TestHostileRenewals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   string
		most   int64 // requests at the path
	}{
		"the refused token again": {"/token", nil, "harness mcp login web", 1},
		"a refresh token alone":   {"/token", responds(200, "application/json", `{"refresh_token": "next"}`), "did not run", 3},
		"a page":                  {"/token", responds(200, "text/html", "<html>"), "did not run", 3},
		"a token with a header":   {"/token", responds(200, "application/json", `{"access_token": "a\nb: c"}`), "did not run", 3},
		"a redirect with it":      {"/token", leads("http://%zzSECRET"), "did not run", 3},
		"no end":                  {"/token", endless, "did not run", 3},
		"rights without end": {"/mcp", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Repeat("s"+r.Header.Get("Mcp-Session-Id")+" ", 20)+strings.Repeat("t", 200_000)+`"`)
			w.WriteHeader(http.StatusForbidden)
		}, "lacks rights", 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			site := protected(t, filepath.Join(h.dir, "lines"))
			server := webServer(site)
			h.signIn(site, server)
			call := h.serverCall(server, "append", `{"line":"x"}`)
			if c.path == "/token" {
				site.Expire()
			}
			file := tokenFile(t, filepath.Join(h.config.Dir, "servers", "tokens"))
			answer := c.answer
			if answer == nil {
				var same string
				rewrite(t, file, func(g map[string]any) { same, _ = g["access_token"].(string) })
				answer = responds(200, "application/json", `{"access_token": "`+same+`", "refresh_token": "`+site.Secret("refresh-")+`"}`)
			}
			var requests atomic.Int64
			site.Change(instead(c.path, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				answer(w, r)
			}))
			r := h.execute(call)
			if !r.GetIsError() || !strings.Contains(r.GetResult(), c.want) {
				t.Errorf("%.600v", r)
			}
			checkMessage(t, name, strings.TrimSpace(r.GetResult()), site)
			if got := requests.Load(); got < 1 || got > c.most {
				t.Errorf("%d requests, want 1 to %d", got, c.most)
			}
			if info, err := os.Stat(file); err == nil && info.Size() > 64<<10 {
				t.Errorf("the file of the tokens has %d bytes", info.Size())
			}
			if _, err := os.Stat(filepath.Join(h.dir, "lines")); err == nil {
				t.Error("the call has run")
			}
		})
	}
}

// TestClientOfTheSettingsStaysWithItsIssuer: a server that names another authorization server later is not the way to the
// secret of a client that is registered at the first.
func TestClientOfTheSettingsStaysWithItsIssuer(t *testing.T) {
	t.Parallel()
	other := protected(t, filepath.Join(t.TempDir(), "lines"))
	h := newHost(t, Config{SandboxPrivateHosts: []string{other.Rename()}})
	site := protected(t, filepath.Join(h.dir, "lines"))
	site.Register("mine", "s3cret", redirect)
	server := webServer(site)
	server.Oauth = &harnessv1.McpOAuth{ClientId: "mine", ClientSecret: "s3cret"}
	h.signIn(site, server)
	site.Change(func(s *oauthtest.Settings) { s.AuthorizationServer = other.URL })
	_, err := h.startSignIn(server)
	if err == nil || !strings.Contains(err.Error(), "if that is right, sign out first") {
		t.Errorf("%v", err)
	}
	if _, err := h.EndServerSignIn(t.Context(), &harnessv1.EndServerSignInRequest{Namespace: "n", Subject: &harnessv1.SignInSubject{Server: server}, Local: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.startSignIn(server); err != nil {
		t.Errorf("after a sign-out: %v", err)
	}
	// A client that a sign-in registers is registered again at the other one.
	if _, err := h.startSignIn(webServer(site)); err != nil {
		t.Errorf("a client that is registered: %v", err)
	}
}
