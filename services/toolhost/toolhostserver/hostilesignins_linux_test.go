package toolhostserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/oauthtest"
)

const (
	resourcePath = "/.well-known/oauth-protected-resource/mcp"
	issuerPath   = "/.well-known/oauth-authorization-server"
)

// bystander starts a server of this machine that no sign-in may reach, and returns its address.
func bystander(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			t.Error("a program that listens on this machine was connected to")
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// responds answers with a status and a body of a type.
func responds(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// endless answers with the beginning of a value that has no end.
func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	piece := strings.Repeat("a", 64<<10)
	for _, err := io.WriteString(w, `{"issuer": "`); err == nil && r.Context().Err() == nil; {
		_, err = io.WriteString(w, piece)
	}
}

// leads redirects to an address, which may be none. SECRET in it is the code or the refresh token of the request.
func leads(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.Header().Set("Location", strings.ReplaceAll(address, "SECRET", r.PostForm.Get("code")+r.PostForm.Get("refresh_token")))
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

func instead(path string, handler http.HandlerFunc) func(*oauthtest.Settings) {
	return func(s *oauthtest.Settings) { s.Instead = map[string]http.HandlerFunc{path: handler} }
}

func publishes(key string, value any) func(*oauthtest.Settings) {
	return func(s *oauthtest.Settings) { s.Metadata = func(m map[string]any) { m[key] = value } }
}

// asks answers requests without a token with a challenge that has parameters.
func asks(parameters string) func(*oauthtest.Settings) {
	return instead("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer "+parameters)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

// checkMessage fails on a message that people or models may not be shown.
func checkMessage(t *testing.T, name, text string, site *oauthtest.Server) {
	t.Helper()
	if len(text) > 1500 || content.Clean(text) != text || strings.Contains(text, "\n") {
		t.Errorf("%s: the message has %d bytes, and is not one line of text: %.300q", name, len(text), text)
	}
	for _, secret := range site.Secrets() {
		for _, part := range []string{secret, url.QueryEscape(secret), secret[:12]} {
			if strings.Contains(text, part) {
				t.Errorf("%s: the message has a secret: %s", name, text)
			}
		}
	}
}

// TestHostileServersBeginNoSignIn: whatever a server and its authorization server publish, a sign-in that begins sends
// people and requests only where they may go, and else it is refused in one line.
func TestHostileServersBeginNoSignIn(t *testing.T) {
	t.Parallel()
	near := bystander(t)
	honest := protected(t, filepath.Join(t.TempDir(), "lines"))
	h := newHost(t, Config{SandboxPrivateHosts: []string{honest.Rename()}})
	site := protected(t, filepath.Join(h.dir, "lines"))
	for name, c := range map[string]struct {
		change func(*oauthtest.Settings)
		want   string
	}{
		"the challenge names this machine":         {asks(`resource_metadata="` + near + `/x"`), "only the ports 80 and 443"},
		"the challenge names a link-local host":    {asks(`resource_metadata="http://169.254.169.254/latest"`), "needs https"},
		"the same over TLS":                        {asks(`resource_metadata="https://169.254.169.254/latest"`), "no public address"},
		"the challenge names a mapped address":     {asks(`resource_metadata="https://[::ffff:127.0.0.1]/x"`), "no public address"},
		"the challenge names a decimal address":    {asks(`resource_metadata="https://2130706433/x"`), "neither a name nor an address"},
		"the challenge names a file":               {asks(`resource_metadata="file:///etc/passwd"`), "cannot be used"},
		"the challenge asks for endless scopes":    {asks(`scope="` + strings.Repeat("s1 ", 20_000) + `"`), "expected at most 16384"},
		"metadata redirects to this machine":       {instead(resourcePath, leads(near)), "only the ports 80 and 443"},
		"metadata redirects to a link-local host":  {instead(resourcePath, leads("https://169.254.169.254/")), "no public address"},
		"metadata redirects to one without TLS":    {instead(resourcePath, leads("http://example.com/")), "needs https"},
		"metadata redirects with credentials":      {instead(resourcePath, leads("https://u:p@example.com/")), "cannot be used"},
		"metadata redirects to a file":             {instead(resourcePath, leads("file:///etc/passwd")), "cannot be used"},
		"metadata redirects nowhere":               {instead(resourcePath, leads("http://["+strings.Repeat("x", 100_000))), "Location"},
		"metadata redirects for ever":              {instead(resourcePath, leads(resourcePath)), "more than 5 redirects"},
		"metadata never ends":                      {instead(resourcePath, endless), "RFC 9728"},
		"metadata is a list":                       {instead(resourcePath, responds(200, "application/json", `[1]`)), "RFC 9728"},
		"metadata is deep":                         {instead(resourcePath, responds(200, "application/json", strings.Repeat("[", 500_000))), "RFC 9728"},
		"metadata has a list for a text":           {instead(resourcePath, responds(200, "application/json", `{"resource": []}`)), "RFC 9728"},
		"metadata fails":                           {instead(resourcePath, responds(500, "text/html", "no")), "status 500"},
		"metadata is for a sibling":                {func(s *oauthtest.Settings) { s.Resource = site.URL + "/other" }, "and not for its address"},
		"metadata is for another host":             {func(s *oauthtest.Settings) { s.Resource = honest.Resource() }, "and not for its address"},
		"metadata names a script":                  {func(s *oauthtest.Settings) { s.AuthorizationServer = "javascript:alert(1)" }, "cannot be used"},
		"metadata names this machine":              {func(s *oauthtest.Settings) { s.AuthorizationServer = near }, "only the ports 80 and 443"},
		"metadata names marks of direction":        {func(s *oauthtest.Settings) { s.AuthorizationServer = "http://a%E2%80%AE%C2%9B31m%E2%80%8Bb.example" }, "needs https"},
		"the issuer is another":                    {publishes("issuer", honest.URL), "does not match"},
		"the issuer is long, and moves the cursor": {publishes("issuer", strings.Repeat("\x1b[2J\u202e", 20_000)), "metadata issuer"},
		"the issuer redirects to this machine":     {instead(issuerPath, leads(near)), "only the ports 80 and 443"},
		"the issuer redirects for ever":            {instead(issuerPath, leads(issuerPath)), "more than 5 redirects"},
		"the issuer's metadata never ends":         {instead(issuerPath, endless), "its authorization server"},
		"the issuer's metadata is a page":          {instead(issuerPath, responds(200, "text/html", "<html>")), "content type"},
		"the issuer's metadata is a list":          {instead(issuerPath, responds(200, "application/json", "[]")), "its authorization server"},
		"PKCE with plain only":                     {publishes("code_challenge_methods_supported", []string{"plain"}), "PKCE with S256"},
		"no PKCE":                                  {publishes("code_challenge_methods_supported", nil), "PKCE"},
		"persons run a script":                     {publishes("authorization_endpoint", "javascript:alert(1)"), "javascript"},
		"persons open a file":                      {publishes("authorization_endpoint", "file:///etc/passwd"), "authorization_endpoint"},
		"persons open a program":                   {publishes("authorization_endpoint", "ms-msdt:/id"), "authorization_endpoint"},
		"persons open a page without TLS":          {publishes("authorization_endpoint", "http://example.com/authorize"), "authorization_endpoint"},
		"persons open another's page":              {publishes("authorization_endpoint", honest.URL+"/authorize"), "would send the code of that site to"},
		"persons open a page at another port":      {publishes("authorization_endpoint", near+"/authorize"), "would send the code of that site to"},
		"persons open a page of a foreign site":    {publishes("authorization_endpoint", "https://accounts.example.com/authorize"), "would send the code of that site to"},
		"persons open this machine": {func(s *oauthtest.Settings) {
			s.Metadata = func(m map[string]any) {
				m["authorization_endpoint"], m["token_endpoint"] = near+"/delete", near+"/token"
			}
		}, "only the ports 80 and 443"},
		"persons open this machine by a number": {func(s *oauthtest.Settings) {
			s.Metadata = func(m map[string]any) {
				m["authorization_endpoint"], m["token_endpoint"] = "https://127.1/delete", "https://127.1/token"
			}
		}, "neither a name nor an address"},
		"persons open an address with credentials": {publishes("authorization_endpoint", "https://a@"+"example.com/"), "cannot be used"},
		"the page has a fragment":                  {publishes("authorization_endpoint", site.URL+"/authorize#"+"x"), "cannot be used"},
		"the page has a redirect already":          {publishes("authorization_endpoint", site.URL+"/authorize?redirect_uri=https://evil.example"), "redirect_uri already"},
		"the page has a state already":             {publishes("authorization_endpoint", site.URL+"/authorize?%73tate=x"), "state already"},
		"the page is long":                         {publishes("authorization_endpoint", site.URL+"/authorize?x="+strings.Repeat("x", 20_000)), "expected at most 16384"},
		"no page":                                  {publishes("authorization_endpoint", ""), "names no endpoint"},
		"no endpoint for tokens":                   {publishes("token_endpoint", ""), "names no endpoint"},
		"clients register on this machine":         {publishes("registration_endpoint", near), "only the ports 80 and 443"},
		"clients register without TLS":             {publishes("registration_endpoint", "http://example.com/"), "registration_endpoint"},
		"clients register at a link-local host":    {publishes("registration_endpoint", "https://[fe80::1]/"), "registration_endpoint"},
		"registration redirects":                   {instead("/register", leads("/elsewhere")), "status 307"},
		"registration redirects nowhere":           {instead("/register", leads("http://%zz")), "Location"},
		"registration never ends":                  {instead("/register", endless), "RFC 7591"},
		"registration is a page":                   {instead("/register", responds(201, "text/html", "<html>")), "RFC 7591"},
		"registration is a list":                   {instead("/register", responds(201, "application/json", "[]")), "RFC 7591"},
		"registration without an id":               {instead("/register", responds(200, "application/json", "{}")), "RFC 7591"},
		"registration breaks after its secret":     {instead("/register", responds(200, "application/json", `{"client_secret": "`+site.Secret("registered-")+`", "client_id": 5}`)), "RFC 7591"},
		"registration fails with its secret":       {instead("/register", responds(403, "application/json", `{"client_secret": "`+site.Secret("registered-")+`"}`)), "status 403"},
		"registration returns a long client":       {instead("/register", responds(200, "application/json", `{"client_id": "`+strings.Repeat("c", 900_000)+`"}`)), "expected at most 16384"},
		"registration is refused with an escape":   {instead("/register", responds(400, "application/json", `{"error": "no\u001b[2J", "error_description": "`+strings.Repeat(`\n`, 9000)+`"}`)), "does not register a client: no"},
	} {
		site.Change(c.change)
		start, err := h.startSignIn(webServer(site))
		if err == nil {
			t.Errorf("%s: it begins: %.300s", name, start.GetAuthorizationUrl())
			continue
		}
		if grpcstatus.Code(grpcError(err)) != codes.FailedPrecondition || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.600v, want %q", name, err, c.want)
		}
		checkMessage(t, name, grpcstatus.Convert(grpcError(err)).Message(), site)
		site.Change(func(s *oauthtest.Settings) { *s = oauthtest.Settings{} })
	}
	if files, _ := filepath.Glob(filepath.Join(h.config.Dir, "servers", "tokens", "*.json")); len(files) != 0 {
		t.Errorf("%v was stored", files)
	}
}

// TestPageOfASignInIsPlainText: neither a terminal nor a shell acts on the address that a person opens, and a page of the
// site of the tokens is one of the authorization server.
func TestPageOfASignInIsPlainText(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	site := protected(t, filepath.Join(h.dir, "lines"))
	const marks = "/authorize?x=`id`$(id)'\"<>|\\{} \u202e\u009b31m\u200b"
	for name, change := range map[string]func(map[string]any){
		"marks in the query": func(m map[string]any) { m["authorization_endpoint"] = site.URL + marks },
		"marks in the path":  func(m map[string]any) { m["authorization_endpoint"] = site.URL + "/\u202e`$(id)'/authorize" },
		"a site of its tokens": func(m map[string]any) {
			m["authorization_endpoint"], m["token_endpoint"] = "https://login.accounts.example.com/authorize", "https://tokens.example.com/"
		},
		"a page of its site": func(m map[string]any) { m["token_endpoint"] = "https://tokens.example.com/" },
	} {
		site.Change(func(s *oauthtest.Settings) { s.Metadata = change })
		start, err := h.startSignIn(webServer(site))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		address := start.GetAuthorizationUrl()
		if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("`$'\"<>|\\{}()", r) }) {
			t.Errorf("%s: %q", name, address)
		}
		u, err := url.Parse(address)
		if err != nil || u.Query().Get("state") != start.GetState() || strings.Contains(name, "query") && !strings.Contains(u.Query().Get("x"), "`id`$(id)") {
			t.Errorf("%s: %q: %v", name, address, err)
		}
	}
}

// TestATokenIsForTheServerThatGetsIt: a server whose challenge or metadata names another one gets no token for that one.
func TestATokenIsForTheServerThatGetsIt(t *testing.T) {
	t.Parallel()
	other := protected(t, filepath.Join(t.TempDir(), "lines"))
	h := newHost(t, Config{SandboxPrivateHosts: []string{other.Rename()}})
	site := protected(t, filepath.Join(h.dir, "lines"))
	for name, change := range map[string]func(*oauthtest.Settings){
		"its challenge":         asks(`resource_metadata="` + other.URL + resourcePath + `"`),
		"a redirect":            instead(resourcePath, leads(other.URL+resourcePath)),
		"authorization servers": func(s *oauthtest.Settings) { s.AuthorizationServer = other.URL },
	} {
		site.Change(change)
		start, err := h.startSignIn(webServer(site))
		site.Change(func(s *oauthtest.Settings) { *s = oauthtest.Settings{} })
		if err != nil && strings.Contains(err.Error(), "and not for its address") {
			continue
		}
		if u, parsed := url.Parse(start.GetAuthorizationUrl()); err != nil || parsed != nil || u.Query().Get("resource") != site.Resource() {
			t.Errorf("%s: %v, %v", name, start, err)
		}
	}
}

// TestASignInEndsWithItsCaller: a body that comes byte by byte does not hold a caller that gives up.
func TestASignInEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	site := protected(t, filepath.Join(h.dir, "lines"))
	for _, path := range []string{resourcePath, issuerPath, "/register"} {
		ctx, cancel := context.WithCancel(t.Context())
		site.Change(instead(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for ; r.Context().Err() == nil; cancel() {
				if _, err := io.WriteString(w, " "); err != nil || http.NewResponseController(w).Flush() != nil {
					return
				}
			}
		}))
		_, err := h.StartServerSignIn(ctx, &harnessv1.StartServerSignInRequest{
			Namespace: "n", Subject: &harnessv1.SignInSubject{Server: webServer(site)}, Local: true, RedirectUri: redirect,
		})
		if err == nil || ctx.Err() == nil {
			t.Errorf("%s: %v", path, err)
		}
		cancel()
	}
}
