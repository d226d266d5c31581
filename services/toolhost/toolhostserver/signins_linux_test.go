package toolhostserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/oauthtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

const redirect = "http://127.0.0.1:4321/callback"

// protected starts a server of tools that wants a sign-in. It appends to lines.
func protected(t *testing.T, lines string) *oauthtest.Server {
	t.Helper()
	return oauthtest.New(t, servertest.TestHandler(t, func(name string) string { return map[string]string{servertest.Lines: lines}[name] }))
}

func webServer(s *oauthtest.Server) *harnessv1.McpServer {
	return &harnessv1.McpServer{Name: "web", Url: s.Resource()}
}

// startSignIn starts a sign-in of namespace n at a server.
func (h *host) startSignIn(server *harnessv1.McpServer) (*harnessv1.SignInStart, error) {
	r, err := h.StartServerSignIn(context.Background(), &harnessv1.StartServerSignInRequest{
		Namespace: "n", Subject: &harnessv1.SignInSubject{Server: server}, Local: true, RedirectUri: redirect,
	})
	return r.GetStart(), err
}

// finish completes a sign-in with what the browser has brought back.
func (h *host) finish(q url.Values) (*harnessv1.SignInState, error) {
	r, err := h.FinishServerSignIn(context.Background(), &harnessv1.FinishServerSignInRequest{Namespace: "n", Returned: &harnessv1.SignInReturn{
		State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Error: q.Get("error"),
	}})
	return r.GetState(), err
}

// signIn signs namespace n in.
func (h *host) signIn(site *oauthtest.Server, server *harnessv1.McpServer) {
	h.t.Helper()
	start, err := h.startSignIn(server)
	if err != nil {
		h.t.Fatal(err)
	}
	if state, err := h.finish(site.Agree(start.GetAuthorizationUrl()).Query()); err != nil || !state.GetSignedIn() {
		h.t.Fatalf("%v, %v", state, err)
	}
}

// tokenFile returns the file with the tokens of the only account.
func tokenFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	return files[0]
}

// TestPersonSignsIn: a server that wants a sign-in reports it; after one it is called, without a
// restart; its tokens are in a file that its user alone reads; and after a sign-out it reports it
// again.
func TestPersonSignsIn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oauthtest.Settings){
		"public client":        func(*oauthtest.Settings) {},
		"client with a secret": func(s *oauthtest.Settings) { s.Secret = true },
		"without metadata":     func(s *oauthtest.Settings) { s.NoMetadata, s.ResponseIssuer = true, "-" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			site := protected(t, filepath.Join(h.dir, "lines"))
			site.Change(change)
			server := webServer(site)
			d := h.described(server)[0]
			if d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN || !strings.Contains(d.GetMessage(), "harness mcp login web --namespace n") {
				t.Fatalf("%v", d)
			}
			h.signIn(site, server)
			call := h.serverCall(server, "append", `{"line":"one"}`)
			if r := h.execute(call); r.GetIsError() || h.read("lines") != "one\n" {
				t.Errorf("%v", r)
			}
			dir := filepath.Join(h.config.Dir, "servers", "tokens")
			for path, want := range map[string]os.FileMode{dir: 0o700, tokenFile(t, dir): 0o600} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
			out, err := h.EndServerSignIn(context.Background(), &harnessv1.EndServerSignInRequest{Namespace: "n", Subject: &harnessv1.SignInSubject{Server: server}, Local: true})
			if err != nil || !out.GetRemoved() {
				t.Fatalf("%v, %v", out, err)
			}
			again := h.request(call.GetTool(), "", nil)
			again.Arguments, again.Mcp = call.GetArguments(), call.GetMcp()
			for range 2 { // the second one connects
				again.CallId += "a"
				if r := h.execute(again); !r.GetIsError() || !strings.Contains(r.GetResult(), "a person has to sign in: type harness mcp login web") || !strings.Contains(r.GetResult(), "did not run") {
					t.Errorf("after a sign-out: %v", r)
				}
			}
			h.signIn(site, server)
			again.CallId = "after"
			if r := h.execute(again); r.GetIsError() || h.read("lines") != "one\none\n" {
				t.Errorf("after the second sign-in: %v", r)
			}
		})
	}
}

// TestOneRefresh: when a token expires under 20 parallel calls of two processes, one of them
// refreshes it. A second refresh would revoke all tokens.
func TestOneRefresh(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	t.Setenv(tokensVariable, tokens)
	site := protected(t, filepath.Join(dir, "lines"))
	h := newHost(t, Config{Tokens: tokens})
	other := serve(t, filepath.Join(dir, "other"))
	server := webServer(site)
	h.signIn(site, server)
	call := h.serverCall(server, "append", `{"line":"x"}`)
	hosts := []func(context.Context, *harnessv1.ExecuteToolRequest) (*harnessv1.ExecuteToolResponse, error){
		h.ExecuteTool,
		func(ctx context.Context, r *harnessv1.ExecuteToolRequest) (*harnessv1.ExecuteToolResponse, error) {
			return other.ExecuteTool(ctx, r)
		},
	}
	for round, expire := range []func(){
		site.Expire, // the server refuses the token
		func() { // its time is over
			rewrite(t, tokenFile(t, tokens), func(g map[string]any) {
				g["issued"], g["expiry"] = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
			})
		},
	} {
		for i, to := range hosts { // both are connected
			request := h.request(call.GetTool(), "", nil)
			request.Arguments, request.Mcp = call.GetArguments(), call.GetMcp()
			if r, err := to(context.Background(), request); err != nil || r.GetIsError() {
				t.Fatalf("host %d: %v, %v", i, r, err)
			}
		}
		expire()
		before := site.Counts()
		var all sync.WaitGroup
		for i := range 20 {
			request := h.request(call.GetTool(), "", nil)
			request.Arguments, request.Mcp = call.GetArguments(), call.GetMcp()
			all.Go(func() {
				if r, err := hosts[i%2](context.Background(), request); err != nil || r.GetIsError() || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
					t.Errorf("call %d: %v, %v", i, r, err)
				}
			})
		}
		all.Wait()
		if now := site.Counts(); now.Refreshes != before.Refreshes+1 || now.Reuses != 0 {
			t.Errorf("round %d: %d refreshes, %d uses of a former refresh token", round, now.Refreshes-before.Refreshes, now.Reuses)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "lines")); strings.Count(string(data), "x\n") != 44 {
		t.Errorf("%d lines, want 44", strings.Count(string(data), "x\n"))
	}
}

// rewrite changes a file with JSON.
func rewrite(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	change(value)
	if data, err = json.Marshal(value); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNothingHangsWithoutARefreshToken: calls under an expired token that nothing renews end with
// an error result that names what a person types, and so does one whose refresh is refused.
func TestNothingHangsWithoutARefreshToken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oauthtest.Settings){
		"no refresh token":   func(s *oauthtest.Settings) { s.NoRefresh = true },
		"refresh is refused": func(*oauthtest.Settings) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			site := protected(t, filepath.Join(h.dir, "lines"))
			site.Change(change)
			server := webServer(site)
			h.signIn(site, server)
			call := h.serverCall(server, "append", `{"line":"x"}`)
			site.Expire()
			site.Change(func(s *oauthtest.Settings) { s.TokenStatus, s.TokenError = http.StatusBadRequest, "invalid_grant" })
			var all sync.WaitGroup
			for range 10 {
				request := h.request(call.GetTool(), "", nil)
				request.Arguments, request.Mcp = call.GetArguments(), call.GetMcp()
				all.Go(func() {
					r, err := h.ExecuteTool(context.Background(), request)
					if err != nil || !r.GetIsError() || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || !strings.Contains(r.GetResult(), "harness mcp login web") {
						t.Errorf("%v, %v", r, err)
					}
				})
			}
			all.Wait()
			if d := h.described(server)[0]; d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN || len(d.GetTools()) == 0 {
				t.Errorf("%v", d)
			}
			if _, err := os.Stat(filepath.Join(h.dir, "lines")); err == nil {
				t.Error("a call has run")
			}
			subject := &harnessv1.SignInSubject{Server: server}
			if r, err := h.DescribeServerSignIn(t.Context(), &harnessv1.DescribeServerSignInRequest{Namespace: "n", Subject: subject, Local: true}); err != nil || r.GetState().GetSignedIn() {
				t.Errorf("a token that was refused is listed: %v, %v", r, err)
			}
			if files, _ := filepath.Glob(filepath.Join(h.config.Dir, "servers", "tokens", "*.json")); name == "refresh is refused" && len(files) > 0 {
				t.Errorf("tokens that are refused are kept: %v", files)
			}
		})
	}
}

// TestRefreshThatFailsKeepsTheTokens: an authorization server that is away, or hangs, ends calls
// within their time, and no person has to sign in again.
func TestRefreshThatFailsKeepsTheTokens(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	site := protected(t, filepath.Join(h.dir, "lines"))
	server := webServer(site)
	h.signIn(site, server)
	call := h.serverCall(server, "append", `{"line":"x"}`)
	hangs := make(chan struct{})
	for name, change := range map[string]func(*oauthtest.Settings){
		"is away":   func(s *oauthtest.Settings) { s.TokenStatus = http.StatusBadGateway },
		"redirects": func(s *oauthtest.Settings) { s.TokenRedirect = true },
		"hangs":     func(s *oauthtest.Settings) { s.TokenHangs = hangs },
	} {
		site.Expire()
		site.Change(change)
		request := h.request(call.GetTool(), "", nil)
		request.Arguments, request.Mcp, request.Timeout = call.GetArguments(), call.GetMcp(), durationpb.New(500*time.Millisecond)
		r := h.execute(request)
		if !r.GetIsError() || !strings.Contains(r.GetResult(), "did not run") || strings.Contains(r.GetResult(), "harness mcp login") {
			t.Errorf("%s: %v", name, r)
		}
		for _, secret := range site.Secrets() {
			if strings.Contains(r.GetResult(), secret) {
				t.Errorf("%s: the result has a secret: %s", name, r.GetResult())
			}
		}
		site.Change(func(s *oauthtest.Settings) { *s = oauthtest.Settings{} })
		if name == "hangs" {
			close(hangs)
		}
		request.Timeout = nil
		for until := time.Now().Add(20 * time.Second); ; {
			request.CallId += "a" // the refresh that has failed may not be over
			if r := h.execute(request); !r.GetIsError() {
				break
			} else if time.Now().After(until) {
				t.Fatalf("%s, and is there again: %v", name, r)
			}
		}
	}
}

// TestSignInsAreRefused: each mistake of a server or a response is one line, and stores nothing.
func TestSignInsAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	site := protected(t, filepath.Join(h.dir, "lines"))
	server := webServer(site)
	for name, c := range map[string]struct {
		server *harnessv1.McpServer
		change func(*oauthtest.Settings)
		want   string
	}{
		"another issuer in the metadata":    {server, func(s *oauthtest.Settings) { s.MetadataIssuer = "https://evil.example" }, "issuer"},
		"another resource":                  {server, func(s *oauthtest.Settings) { s.Resource = "https://evil.example/mcp" }, "is for \"https://evil.example/mcp\""},
		"a private authorization server":    {server, func(s *oauthtest.Settings) { s.AuthorizationServer = "https://localhost:1" }, "only the ports 80 and 443"},
		"one without TLS":                   {server, func(s *oauthtest.Settings) { s.AuthorizationServer = "http://example.com" }, "needs https"},
		"a private address in the metadata": {server, func(s *oauthtest.Settings) { s.AuthorizationServer = "https://127.0.0.1" }, "no public address"},
		"no registration":                   {server, func(s *oauthtest.Settings) { s.NoRegistration = true }, "set oauth.client_id"},
		"a certificate":                     {&harnessv1.McpServer{Name: "web", Url: certified.URL}, nil, "certificate cannot be verified"},
		"no sign-in":                        {&harnessv1.McpServer{Name: "web", Url: open.URL}, nil, "asks for no sign-in"},
		"no TLS":                            {&harnessv1.McpServer{Name: "web", Url: "http://example.com/mcp"}, nil, "needs https"},
		"a program":                         {&harnessv1.McpServer{Name: "web", Command: "cat"}, nil, "only a server with url"},
		"a token in headers":                {&harnessv1.McpServer{Name: "web", Url: open.URL, Headers: map[string]string{"authorization": "Bearer x"}}, nil, "token in headers"},
	} {
		if c.change != nil {
			site.Change(c.change)
		}
		_, err := h.startSignIn(c.server)
		if grpcstatus.Code(grpcError(err)) != codes.FailedPrecondition || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		site.Change(func(s *oauthtest.Settings) { *s = oauthtest.Settings{} })
	}
	if d := h.described(&harnessv1.McpServer{Name: "certified", Url: certified.URL})[0]; !strings.HasPrefix(d.GetMessage(), "its certificate cannot be verified") {
		t.Errorf("a certificate that fails: %v", d)
	}
	for name, c := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"another state":  {func(q url.Values) { q.Set("state", "other") }, "no such sign-in"},
		"another issuer": {func(q url.Values) { q.Set("iss", "https://evil.example") }, "is not from"},
		"no issuer":      {func(q url.Values) { q.Del("iss") }, "is not from"},
		"an error":       {func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, "access_denied"},
		"another code":   {func(q url.Values) { q.Set("code", "other") }, "invalid_grant; begin the sign-in again"},
	} {
		start, err := h.startSignIn(server)
		if err != nil {
			t.Fatal(err)
		}
		q := site.Agree(start.GetAuthorizationUrl()).Query()
		good := url.Values{}
		for key, values := range q {
			good[key] = slices.Clone(values)
		}
		c.change(q)
		if _, err := h.finish(q); grpcstatus.Code(grpcError(err)) != codes.FailedPrecondition || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if name == "another state" {
			continue // the sign-in was not named
		}
		if _, err := h.finish(good); err == nil || !strings.Contains(err.Error(), "no such sign-in") {
			t.Errorf("%s: it can be completed after it was refused: %v", name, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(h.config.Dir, "servers", "tokens", "*.json")); len(files) != 0 {
		t.Errorf("%v was stored", files)
	}
	// A spec that came with a token reaches no private address.
	_, err := h.StartServerSignIn(context.Background(), &harnessv1.StartServerSignInRequest{
		Namespace: "n", Subject: &harnessv1.SignInSubject{Server: server}, RedirectUri: redirect,
	})
	if err == nil || !strings.Contains(err.Error(), "only the ports 80 and 443") {
		t.Errorf("a private address with a token: %v", err)
	}
}

// grpcError returns an error as a client sees it.
func grpcError(err error) error {
	if st, ok := fault.Status(err); ok {
		return st.Err()
	}
	return err
}

// TestClientOfTheSettings: a client that is registered already is used, with variables of the
// person who signs in, and so are the scopes of the settings.
func TestClientOfTheSettings(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Withheld: []string{"WITHHELD"}})
	site := protected(t, filepath.Join(h.dir, "lines"))
	site.Register("mine", "s3cret/+", redirect)
	site.Change(func(s *oauthtest.Settings) { s.NoRegistration = true })
	server := webServer(site)
	server.Oauth = &harnessv1.McpOAuth{ClientId: "mine", ClientSecret: "${CLIENT_SECRET}", Scopes: []string{"one", "two"}}
	begin := func(variables map[string]string) (*harnessv1.StartServerSignInResponse, error) {
		return h.StartServerSignIn(context.Background(), &harnessv1.StartServerSignInRequest{
			Namespace: "n", Subject: &harnessv1.SignInSubject{Server: server, Variables: variables}, Local: true, RedirectUri: redirect,
		})
	}
	if _, err := begin(nil); err == nil || !strings.Contains(err.Error(), "CLIENT_SECRET is not set") {
		t.Errorf("%v", err)
	}
	r, err := begin(map[string]string{"CLIENT_SECRET": "s3cret/+"})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(r.GetStart().GetAuthorizationUrl())
	if u.Query().Get("scope") != "one two" || u.Query().Get("client_id") != "mine" {
		t.Errorf("%v", u)
	}
	if _, err := h.finish(site.Agree(u.String()).Query()); err != nil {
		t.Fatal(err)
	}
	site.Expire()
	// A refresh needs no variable: the secret is stored with the token.
	server.Oauth.ClientSecret = ""
	if r := h.execute(h.serverCall(server, "append", `{"line":"x"}`)); r.GetIsError() || site.Counts().Refreshes != 1 {
		t.Errorf("%v, %+v", r, site.Counts())
	}
	server.Oauth.ClientId = "${WITHHELD}"
	if _, err := begin(map[string]string{"WITHHELD": "x"}); err == nil || !strings.Contains(err.Error(), "WITHHELD is not set") {
		t.Errorf("a variable that is withheld: %v", err)
	}
}

// TestMissingRightsAreRequested: a call for which the token lacks a scope reports it, and the next
// sign-in requests it.
func TestMissingRightsAreRequested(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	site := protected(t, filepath.Join(h.dir, "lines"))
	server := webServer(site)
	h.signIn(site, server)
	call := h.serverCall(server, "append", `{"line":"x"}`)
	site.Change(func(s *oauthtest.Settings) { s.Scope = "write" })
	if r := h.execute(call); !r.GetIsError() || !strings.Contains(r.GetResult(), "lacks rights: write; a person has to sign in: type harness mcp login web") {
		t.Errorf("%v", r)
	}
	start, err := h.startSignIn(server)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(start.GetAuthorizationUrl())
	if got := u.Query().Get("scope"); got != "notes offline_access write" {
		t.Errorf("scope %q", got)
	}
	if _, err := h.finish(site.Agree(u.String()).Query()); err != nil {
		t.Fatal(err)
	}
	again := h.request(call.GetTool(), "", nil)
	again.Arguments, again.Mcp = call.GetArguments(), call.GetMcp()
	if r := h.execute(again); r.GetIsError() {
		t.Errorf("%v", r)
	}
}

// TestCallsDoNotWaitForAServerThatIsBack: after a failure to connect, a call waits out a short pause
// instead of failing, and a sign-in ends a longer one.
func TestCallsDoNotWaitForAServerThatIsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	site := protected(t, filepath.Join(h.dir, "lines"))
	server := webServer(site)
	h.signIn(site, server)
	call := h.serverCall(server, "append", `{"line":"x"}`)
	execute := func(name string) *harnessv1.ExecuteToolResponse {
		t.Helper()
		request := h.request(call.GetTool(), "", nil)
		request.Arguments, request.Mcp = call.GetArguments(), proto.CloneOf(call.GetMcp())
		request.Mcp.Server.Name = name
		return h.execute(request)
	}
	fails := func(name string) {
		t.Helper()
		site.Expire()
		site.Change(func(s *oauthtest.Settings) { s.TokenStatus = http.StatusBadGateway })
		other := proto.CloneOf(server)
		other.Name = name
		if d := h.described(other)[0]; d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_FAILED {
			t.Fatalf("%v", d)
		}
	}
	back := func() { site.Change(func(s *oauthtest.Settings) { *s = oauthtest.Settings{} }) }
	fails("short")
	back()
	if r := execute("short"); r.GetIsError() {
		t.Errorf("after the first failure: %v", r)
	}
	fails("long")
	for range 2 {
		if r := execute("long"); !r.GetIsError() || !strings.Contains(r.GetResult(), "did not run") {
			t.Fatalf("while it fails: %v", r)
		}
	}
	back()
	h.signIn(site, server)
	if r := execute("long"); r.GetIsError() {
		t.Errorf("after a sign-in: %v", r)
	}
}
