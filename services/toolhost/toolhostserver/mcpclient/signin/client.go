package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// How a client proves its identity at the token endpoint.
const (
	authNone  = "none"
	authPost  = "client_secret_post"
	authBasic = "client_secret_basic"
)

// maxToken bounds a token, in bytes.
const maxToken = 32 << 10

// client is one that is registered at an authorization server.
type client struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret,omitempty"`
	Auth   string `json:"token_endpoint_auth_method"`
}

// register returns the client of an account, which it registers unless the settings have one.
func (s *SignIns) register(ctx context.Context, a Account, d *discovery, redirect string) (client, error) {
	methods := d.server.TokenEndpointAuthMethodsSupported
	if a.ClientID != "" {
		c := client{ID: a.ClientID, Secret: a.ClientSecret, Auth: authNone}
		if c.Secret != "" {
			c.Auth = authBasic
			if slices.Contains(methods, authPost) {
				c.Auth = authPost
			}
		}
		return c, nil
	}
	if d.server.RegistrationEndpoint == "" {
		return client{}, fmt.Errorf("its authorization server %s registers no clients: register one there, with the redirect address %s, and set oauth.client_id", hostOf(d.server.Issuer), redirect)
	}
	if err := secure(d.server.RegistrationEndpoint); err != nil {
		return client{}, err
	}
	method := authNone
	if len(methods) > 0 && !slices.Contains(methods, authNone) {
		method = authBasic
		if slices.Contains(methods, authPost) {
			method = authPost
		}
	}
	registered, err := s.registered(ctx, a, d.server.RegistrationEndpoint, map[string]any{
		"redirect_uris": []string{redirect}, "token_endpoint_auth_method": method, "client_name": "harnessmesh", "application_type": "native",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "scope": strings.Join(d.scopes, " "),
	})
	if err != nil {
		return client{}, fmt.Errorf("its authorization server %s does not register a client: %w", hostOf(d.server.Issuer), err)
	}
	if registered.Auth == "" {
		registered.Auth = method
	}
	if registered.Secret == "" {
		registered.Auth = authNone
	}
	return registered, nil
}

// registered registers a client with metadata (RFC 7591). No error has the response, which may have a secret.
func (s *SignIns) registered(ctx context.Context, a Account, endpoint string, metadata map[string]any) (client, error) {
	body, err := json.Marshal(metadata)
	if err != nil {
		return client{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return client{}, errors.New("the address of an endpoint cannot be parsed")
	}
	request.Header.Set("Content-Type", "application/json")
	status, data, err := s.send(a, request)
	switch {
	case err != nil:
		return client{}, plain(err)
	case status == http.StatusBadRequest:
		var refused struct {
			Code        string `json:"error"`
			Description string `json:"error_description"`
		}
		if json.Unmarshal(data, &refused) == nil && refused.Code != "" {
			return client{}, errors.New(said(refused.Code, refused.Description))
		}
	case status == http.StatusCreated || status == http.StatusOK:
		var c client
		if json.Unmarshal(data, &c) != nil || c.ID == "" {
			return client{}, errors.New("its response is not in the form of RFC 7591")
		}
		return c, nil
	}
	return client{}, fmt.Errorf("status %d", status)
}

// tokens is a response of a token endpoint.
type tokens struct {
	AccessToken  string          `json:"access_token"`
	TokenType    string          `json:"token_type"`
	RefreshToken string          `json:"refresh_token"`
	ExpiresIn    json.RawMessage `json:"expires_in"` // a number, or by mistake a text
	Scope        *string         `json:"scope"`
	life         time.Duration
	scopes       []string
}

// refusal is an error response of a token endpoint (RFC 6749, section 5.2).
type refusal struct {
	issuer      string
	Code        string `json:"error"`
	Description string `json:"error_description"`
	status      int
	secrets     []string
}

// Error names the authorization server and its reason, without the secrets of the request.
func (r *refusal) Error() string {
	text := fmt.Sprintf("status %d", r.status)
	if r.Code != "" {
		text = said(without(r.Code, r.secrets), without(r.Description, r.secrets))
	}
	return fmt.Sprintf("its authorization server %s refuses the request: %s", hostOf(r.issuer), text)
}

// final reports whether the same request cannot succeed later.
func (r *refusal) final() bool {
	return slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, r.Code)
}

// said returns an error code with its description.
func said(code, description string) string {
	return content.Line(content.Clean(strings.TrimSuffix(code+": "+description, ": ")), 200)
}

// exchange exchanges a code for tokens.
func (s *SignIns) exchange(ctx context.Context, a Account, g *grant, code, verifier, redirect string) (*tokens, error) {
	return s.request(ctx, a, g, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {redirect}, "resource": {g.Resource},
	})
}

// refresh exchanges the refresh token for tokens.
func (s *SignIns) refresh(ctx context.Context, a Account, g *grant) (*tokens, error) {
	return s.request(ctx, a, g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}, "resource": {g.Resource}})
}

// request sends a request to the token endpoint.
func (s *SignIns) request(ctx context.Context, a Account, g *grant, form url.Values) (*tokens, error) {
	secrets := []string{form.Get("code"), form.Get("refresh_token"), form.Get("code_verifier"), g.Secret}
	status, data, err := s.post(ctx, a, g, g.TokenEndpoint, form)
	if err != nil {
		return nil, fmt.Errorf("its authorization server %s cannot be used: %w", hostOf(g.Issuer), plain(err, secrets...))
	}
	if status != http.StatusOK {
		r := &refusal{issuer: g.Issuer, status: status, secrets: secrets}
		_ = json.Unmarshal(data, r) // without a reason the status remains
		return nil, r
	}
	t := &tokens{}
	if json.Unmarshal(data, t) != nil || t.AccessToken == "" || !sendable(t.AccessToken) || !sendable(t.RefreshToken) || t.TokenType != "" && !strings.EqualFold(t.TokenType, "bearer") {
		return nil, fmt.Errorf("its authorization server %s does not return a bearer token", hostOf(g.Issuer))
	}
	if seconds, err := strconv.ParseFloat(strings.Trim(string(t.ExpiresIn), `"`), 64); err == nil && seconds > 0 {
		t.life = time.Duration(min(seconds, 10*365*24*3600) * float64(time.Second))
	}
	if t.Scope != nil {
		t.scopes = bounded(strings.Fields(*t.Scope))
	}
	return t, nil
}

// sendable reports whether a token can be the value of a header.
func sendable(token string) bool {
	return len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// revoke has the authorization server forget the tokens (RFC 7009).
func (s *SignIns) revoke(ctx context.Context, a Account, g *grant) error {
	form := url.Values{"token": {g.AccessToken}, "token_type_hint": {"access_token"}}
	if g.RefreshToken != "" {
		form = url.Values{"token": {g.RefreshToken}, "token_type_hint": {"refresh_token"}}
	}
	status, _, err := s.post(ctx, a, g, g.RevocationEndpoint, form)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		err = plain(err, g.AccessToken, g.RefreshToken, g.Secret)
	}
	return err
}

// post sends a form as the client of a grant.
func (s *SignIns) post(ctx context.Context, a Account, g *grant, endpoint string, form url.Values) (status int, data []byte, err error) {
	if err := secure(endpoint); err != nil {
		return 0, nil, err
	}
	if g.Auth != authBasic {
		form.Set("client_id", g.ID)
		if g.Auth == authPost {
			form.Set("client_secret", g.Secret)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, errors.New("the address of an endpoint cannot be parsed")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if g.Auth == authBasic {
		request.SetBasicAuth(url.QueryEscape(g.ID), url.QueryEscape(g.Secret))
	}
	return s.send(a, request)
}

// send sends a request with credentials, and returns the beginning of its response.
func (s *SignIns) send(a Account, request *http.Request) (status int, data []byte, err error) {
	request.Header.Set("Accept", "application/json")
	response, err := s.sender(a).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err = io.ReadAll(io.LimitReader(response.Body, maxBody))
	return response.StatusCode, data, err
}
