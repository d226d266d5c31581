package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// attempt is a sign-in that a person completes.
type attempt struct {
	account  Account
	grant    *grant // without tokens
	verifier string
	redirect string
	// names: each response of the authorization server has its issuer.
	names bool
	begun time.Time
}

// Start is a sign-in that has begun.
type Start struct {
	// Address is opened in a browser.
	Address string
	// State names the sign-in.
	State string
}

// Return has the parameters with which the browser was redirected.
type Return struct {
	State, Code, Issuer string
	// Error is why there is no code.
	Error string
}

// Start starts a sign-in. The browser is redirected to redirect, which must be on this person's
// machine.
func (s *SignIns) Start(ctx context.Context, a Account, redirect string) (*Start, error) {
	if u, err := url.Parse(redirect); err != nil || u.Scheme != "http" || !loopback(u.Hostname()) || u.User != nil || u.Fragment != "" {
		return nil, errors.New("the redirect address must be http on a loopback address")
	}
	d, err := s.discover(ctx, a)
	if err != nil {
		return nil, err
	}
	if a.Scopes != nil {
		d.scopes = a.Scopes
	} else if slices.Contains(d.server.ScopesSupported, "offline_access") {
		d.scopes = union(d.scopes, []string{"offline_access"})
	}
	before, err := s.store.read(a.key())
	if err != nil {
		return nil, err
	}
	if before != nil && len(before.Wanted) > 0 {
		d.scopes = union(d.scopes, append(slices.Clone(before.Scopes), before.Wanted...))
	}
	if before != nil && a.ClientID != "" && !sameIssuer(before.Issuer, d.server.Issuer) { // its secret is for the former one
		return nil, fmt.Errorf("the client of its settings is registered at %s, and its authorization server is %s: if that is right, sign out first",
			hostOf(before.Issuer), hostOf(d.server.Issuer))
	}
	c, err := s.register(ctx, a, d, redirect)
	if err != nil {
		return nil, err
	}
	p := &attempt{
		account: a, verifier: oauth2.GenerateVerifier(), redirect: redirect, begun: s.config.Now(), names: d.server.AuthorizationResponseIssParameterSupported,
		grant: &grant{
			Server: a.Address, Resource: d.resource, Issuer: d.server.Issuer, TokenEndpoint: d.server.TokenEndpoint, client: c,
			RevocationEndpoint: d.server.RevocationEndpoint, Scopes: d.scopes,
		},
	}
	state := rand.Text()
	request := url.Values{
		"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {redirect}, "state": {state}, "resource": {d.resource},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(p.verifier)}, "code_challenge_method": {"S256"},
	}
	if len(d.scopes) > 0 {
		request.Set("scope", strings.Join(d.scopes, " "))
	}
	address, err := s.page(ctx, a, d, request)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropPending()
	s.pending[state] = p
	return &Start{Address: address, State: state}, nil
}

// dropPending drops sign-ins that have expired, and the oldest if there are too many. The caller
// has locked mu.
func (s *SignIns) dropPending() {
	oldest := ""
	for state, p := range s.pending {
		if s.config.Now().Sub(p.begun) >= Valid {
			delete(s.pending, state)
		} else if oldest == "" || p.begun.Before(s.pending[oldest].begun) {
			oldest = state
		}
	}
	if len(s.pending) >= maxPending {
		delete(s.pending, oldest)
	}
}

// Finish completes a sign-in of a namespace, which it can do once, and stores the tokens.
func (s *SignIns) Finish(ctx context.Context, namespace string, r Return) (State, error) {
	s.mu.Lock()
	p := s.pending[r.State]
	if p != nil && (p.account.Namespace != namespace || s.config.Now().Sub(p.begun) >= Valid) {
		p = nil
	}
	if p != nil {
		delete(s.pending, r.State)
	}
	s.mu.Unlock()
	if p == nil {
		return State{}, errors.New("there is no such sign-in, or it has expired: begin it again")
	}
	// The issuer first: a response of another one has nothing to be trusted (RFC 9207).
	if r.Issuer == "" && p.names || r.Issuer != "" && r.Issuer != p.grant.Issuer {
		return State{}, fmt.Errorf("the response is not from %s, at which the sign-in was begun, but from %q: begin it again, and paste the whole address of the last page",
			content.Clip(p.grant.Issuer, 200), content.Clip(r.Issuer, 200))
	}
	if r.Code == "" {
		return State{}, fmt.Errorf("the sign-in was refused: %s", content.Line(content.Clean(cmp.Or(r.Error, "there is no code")), 300))
	}
	response, err := s.exchange(ctx, p.account, p.grant, r.Code, p.verifier, p.redirect)
	if err != nil {
		return State{}, fmt.Errorf("%w; begin the sign-in again", err)
	}
	p.grant.take(response, s.config.Now())
	err = s.store.locked(ctx, p.account.key(), func() error { return s.store.write(p.account.key(), p.grant) })
	if err != nil {
		return State{}, err
	}
	return s.stateOf(p.grant), nil
}
