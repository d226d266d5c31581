// Package oauthtest is a strict OAuth 2.1 authorization server for tests, with the resource that it
// protects, on loopback. It checks what a client must send (PKCE, resource, redirect address,
// client, state), replaces a refresh token when it is used, and revokes a family of tokens if a
// refresh token is used again.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Settings are what a server does differently. They are changed with Server.Change only.
type Settings struct {
	// Life is the life of access tokens; 0: responses do not have it.
	Life time.Duration
	// NoRefresh leaves out refresh tokens.
	NoRefresh bool
	// NoRegistration leaves out the endpoint for clients.
	NoRegistration bool
	// Secret gives registered clients a secret, which they must send as HTTP basic.
	Secret bool
	// MetadataIssuer replaces the issuer in the metadata.
	MetadataIssuer string
	// ResponseIssuer replaces the issuer in the redirect; "-": there is none.
	ResponseIssuer string
	// Resource replaces the resource in the metadata of the resource.
	Resource string
	// AuthorizationServer replaces the address in the metadata of the resource.
	AuthorizationServer string
	// NoMetadata leaves out the metadata of the resource and of the authorization server.
	NoMetadata bool
	// TokenRedirect makes the token endpoint redirect to an address that fails the test.
	TokenRedirect bool
	// TokenStatus makes the token endpoint fail, and TokenError with this error.
	TokenStatus int
	TokenError  string
	// TokenHangs makes the token endpoint wait until it is closed, and fail; nil: it does not.
	TokenHangs chan struct{}
	// Scope is required of each token; empty: none is.
	Scope string
	// Metadata changes the metadata of the authorization server; nil: it does not.
	Metadata func(map[string]any)
	// Instead are handlers that replace those of paths.
	Instead map[string]http.HandlerFunc
}

// Counts are requests that were accepted.
type Counts struct{ Registrations, Exchanges, Refreshes, Revocations, Reuses int }

// Server is an authorization server with its resource at /mcp.
type Server struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	settings Settings
	counts   Counts
	clients  map[string]client
	codes    map[string]grant
	access   map[string]*family
	refresh  map[string]*family
	used     map[string]*family
	secrets  []string
}

type client struct{ redirect, secret string }

type grant struct {
	client, redirect, challenge, scope string
}

type family struct {
	client, scope string
	revoked       bool
}

// New starts a server whose resource is handler.
func New(t testing.TB, handler http.Handler) *Server {
	s := &Server{
		t: t, clients: map[string]client{}, codes: map[string]grant{}, access: map[string]*family{}, refresh: map[string]*family{}, used: map[string]*family{},
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.protect(handler))
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", s.resourceMetadata)
	mux.HandleFunc("/.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("/register", s.register)
	mux.HandleFunc("/authorize", s.authorize)
	mux.HandleFunc("/token", s.token)
	mux.HandleFunc("/revoke", s.revoke)
	mux.HandleFunc("/elsewhere", func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s followed a redirect", r.Method) })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if instead := s.set().Instead[r.URL.Path]; instead != nil {
			instead(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Rename gives the server the name localhost instead of its address, and returns NAME:PORT.
func (s *Server) Rename() string {
	s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	return strings.TrimPrefix(s.URL, "http://")
}

// Resource returns the address of the resource.
func (s *Server) Resource() string { return s.URL + "/mcp" }

// Change changes the settings.
func (s *Server) Change(change func(*Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.settings)
}

// Counts returns how many requests were accepted.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Expire makes the resource refuse all access tokens that were issued.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

// Register adds a client.
func (s *Server) Register(id, secret, redirect string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[id] = client{redirect: redirect, secret: secret}
}

// Secrets returns the codes, tokens and secrets that were issued, which no message may have.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.secrets)
}

// Agree opens the address of a sign-in as the browser of a person who agrees, and returns the
// address to which it is redirected.
func (s *Server) Agree(address string) *url.URL {
	s.t.Helper()
	response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Get(address)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = response.Body.Close()
	to, err := response.Location()
	if err != nil || response.StatusCode != http.StatusFound {
		s.t.Fatalf("the authorization endpoint returns %s: %v", response.Status, err)
	}
	return to
}

func (s *Server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		of, known := s.access[token]
		scope := s.settings.Scope
		s.mu.Unlock()
		switch {
		case !bearer || !known || of.revoked:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="notes"`, s.URL))
			w.WriteHeader(http.StatusUnauthorized)
		case scope != "" && !slices.Contains(strings.Fields(of.scope), scope):
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, scope))
			w.WriteHeader(http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (s *Server) resourceMetadata(w http.ResponseWriter, _ *http.Request) {
	set := s.set()
	if set.NoMetadata {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	write(w, http.StatusOK, map[string]any{"resource": or(set.Resource, s.Resource()), "authorization_servers": []string{or(set.AuthorizationServer, s.URL)}, "scopes_supported": []string{"notes"}})
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	set := s.set()
	if set.NoMetadata {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	m := map[string]any{
		"issuer": or(set.MetadataIssuer, s.URL), "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "revocation_endpoint": s.URL + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"notes", "offline_access"},
		"authorization_response_iss_parameter_supported": true, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"},
	}
	if set.Secret {
		m["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	}
	if !set.NoRegistration {
		m["registration_endpoint"] = s.URL + "/register"
	}
	if set.Metadata != nil {
		set.Metadata(m)
	}
	write(w, http.StatusOK, m)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Grants    []string `json:"grant_types"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Redirects) != 1 || !slices.Contains(asked.Grants, "refresh_token") {
		write(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, made := "client-"+rand.Text()[:8], client{redirect: asked.Redirects[0]}
	response := map[string]any{"client_id": id, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": "none"}
	if s.settings.Secret {
		made.secret = s.secret("secret ")
		response["client_secret"], response["token_endpoint_auth_method"] = made.secret, "client_secret_basic"
	}
	s.clients[id] = made
	s.counts.Registrations++
	write(w, http.StatusCreated, response)
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[q.Get("client_id")]
	resource := or(s.settings.Resource, s.Resource())
	if !known || q.Get("redirect_uri") != c.redirect || q.Get("response_type") != "code" || q.Get("state") == "" || q.Get("resource") != resource ||
		q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 {
		s.t.Errorf("request of an authorization: %v", q)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	code := s.secret("code-")
	s.codes[code] = grant{q.Get("client_id"), c.redirect, q.Get("code_challenge"), q.Get("scope")}
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if issuer := or(s.settings.ResponseIssuer, s.URL); issuer != "-" {
		back.Set("iss", issuer)
	}
	http.Redirect(w, r, c.redirect+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	set := s.set()
	if set.TokenHangs != nil {
		select {
		case <-set.TokenHangs:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if set.TokenRedirect {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		return
	}
	if set.TokenStatus != 0 {
		write(w, set.TokenStatus, map[string]string{"error": set.TokenError, "error_description": "not now: " + r.PostForm.Get("refresh_token") + r.PostForm.Get("code")})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, proven := s.client(r)
	if !proven {
		write(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	if r.PostForm.Get("resource") != or(set.Resource, s.Resource()) {
		s.t.Errorf("resource %q in a request of a token", r.PostForm.Get("resource"))
	}
	var of *family
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		g, known := s.codes[r.PostForm.Get("code")]
		delete(s.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if !known || g.client != id || g.redirect != r.PostForm.Get("redirect_uri") || g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			write(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		of = &family{client: id, scope: g.scope}
		s.counts.Exchanges++
	case "refresh_token":
		token := r.PostForm.Get("refresh_token")
		if of = s.used[token]; of != nil {
			of.revoked = true
			s.counts.Reuses++
		}
		of = s.refresh[token]
		delete(s.refresh, token)
		if of == nil || of.revoked || of.client != id {
			write(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		s.used[token] = of
		s.counts.Refreshes++
	default:
		write(w, http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type"})
		return
	}
	access := s.secret("access-")
	s.access[access] = of
	response := map[string]any{"access_token": access, "token_type": "Bearer", "scope": of.scope}
	if set.Life > 0 {
		response["expires_in"] = set.Life.Seconds()
	}
	if !set.NoRefresh {
		refresh := s.secret("refresh-")
		s.refresh[refresh] = of
		response["refresh_token"] = refresh
	}
	write(w, http.StatusOK, response)
}

// Secret makes a secret of a response that a test writes, which no message may have.
func (s *Server) Secret(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret(kind)
}

// client returns the client of a request, and whether it has proven that it is it.
func (s *Server) client(r *http.Request) (string, bool) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	c, known := s.clients[id]
	return id, known && c.secret == secret
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.refresh[r.PostForm.Get("token")]; of != nil {
		of.revoked = true
		s.counts.Revocations++
	}
}

func (s *Server) set() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// secret makes a secret. The caller has locked mu.
func (s *Server) secret(kind string) string {
	text := kind + rand.Text()
	s.secrets = append(s.secrets, text)
	return text
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
