package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// AccountOf returns the account of the runs of a namespace at a server. expand replaces the
// variables of a text.
func AccountOf(namespace string, server *harnessv1.McpServer, local bool, expand func(string) (string, error)) (signin.Account, error) {
	none := signin.Account{}
	if server.GetUrl() == "" {
		return none, errors.New("only a server with url has a sign-in")
	}
	a := signin.Account{Namespace: namespace, Scopes: server.GetOauth().GetScopes(), Local: local}
	var err error
	for _, text := range []struct {
		to   *string
		from string
	}{{&a.Address, server.GetUrl()}, {&a.ClientID, server.GetOauth().GetClientId()}, {&a.ClientSecret, server.GetOauth().GetClientSecret()}} {
		if *text.to, err = expand(text.from); err != nil {
			return none, err
		}
	}
	if a.Headers, err = headersOf(server, expand); err != nil {
		return none, err
	}
	if a.Headers.Get("Authorization") != "" {
		return none, errors.New("it has a token in headers: remove the header Authorization, or replace its token")
	}
	return a, nil
}

// headersOf returns the headers of the settings of a server.
func headersOf(server *harnessv1.McpServer, expand func(string) (string, error)) (http.Header, error) {
	headers := http.Header{}
	for name, value := range server.GetHeaders() {
		value, err := expand(value)
		if err != nil {
			return nil, err
		}
		headers.Set(name, value)
	}
	return headers, nil
}

// account has the tokens of a session.
type account struct {
	signin.Account
	signIns *signin.SignIns
	session *session
	// last is the token of the last request. It is protected by the mutex of the session.
	last string
}

// tokens returns the account of the session; nil if its headers have a token.
func (s *session) tokens() (tokens, error) {
	headers, err := headersOf(s.server, s.expand)
	if err != nil || s.servers.config.SignIns == nil || headers.Get("Authorization") != "" {
		return nil, err
	}
	of, err := AccountOf(s.run.Namespace, s.server, s.run.Local, s.expand)
	if err != nil {
		return nil, err
	}
	a := &account{Account: of, signIns: s.servers.config.SignIns, session: s}
	s.mu.Lock()
	s.account, s.tried = a, a.version()
	s.mu.Unlock()
	return a, nil
}

func (a *account) token(ctx context.Context, stale string) (string, error) {
	token, err := a.signIns.Token(ctx, a.Account, stale)
	if token != "" {
		a.session.secrets.add(token)
	}
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	if err != nil || token != a.last { // else no person has signed in since
		a.last, a.session.tried = token, a.version()
	}
	return token, err
}

func (a *account) want(ctx context.Context, scopes []string) {
	_ = a.signIns.Want(ctx, a.Account, scopes) // without them the next sign-in requests less
}

// version changes when a person has signed in or out.
func (a *account) version() string { return a.signIns.Version(a.Account) }

// mayRetry reports whether the server can be connected to before the pause after a failure is
// over: a person has signed in since. The caller has locked mu.
func (s *session) mayRetry() bool { return s.account != nil && s.account.version() != s.tried }

// needsSignIn sets the state of a server at which a person has to sign in. The caller has locked mu.
func (s *session) needsSignIn() {
	s.state, s.message = harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN, signInText(s.run.Namespace, s.server, s.account != nil)
}

// signInText returns what a person types.
func signInText(namespace string, server *harnessv1.McpServer, oauth bool) string {
	if !oauth {
		return "it does not accept the token in its headers: replace it"
	}
	command := "harness mcp login " + server.GetName()
	if namespace != "default" {
		command += " --namespace " + namespace
	}
	return fmt.Sprintf("a person has to sign in: type %s with the --agent or --mcp file that names it", command)
}
