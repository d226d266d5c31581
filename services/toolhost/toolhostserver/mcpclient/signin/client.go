package signin

import (
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

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// How a client proves its identity at the token endpoint.
const (
	authNone  = "none"
	authPost  = "client_secret_post"
	authBasic = "client_secret_basic"
)

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
	registered, err := oauthex.RegisterClient(ctx, d.server.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, ClientName: "harnessmesh", ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, Scope: strings.Join(d.scopes, " "),
	}, s.sender(a))
	if err != nil {
		var refused *oauthex.ClientRegistrationError
		if errors.As(err, &refused) {
			return client{}, fmt.Errorf("its authorization server %s does not register a client: %s", hostOf(d.server.Issuer), said(refused.ErrorCode, refused.ErrorDescription))
		}
		return client{}, fmt.Errorf("its authorization server %s does not register a client: %s", hostOf(d.server.Issuer), content.Line(content.Clean(plain(err).Error()), 200))
	}
	c := client{ID: registered.ClientID, Secret: registered.ClientSecret, Auth: registered.TokenEndpointAuthMethod}
	if c.Auth == "" {
		c.Auth = method
	}
	if c.Secret == "" {
		c.Auth = authNone
	}
	return c, nil
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
		text = said(r.Code, r.Description)
	}
	for _, secret := range r.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
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
	status, data, err := s.post(ctx, a, g, g.TokenEndpoint, form)
	if err != nil {
		return nil, fmt.Errorf("its authorization server %s cannot be used: %w", hostOf(g.Issuer), err)
	}
	if status != http.StatusOK {
		r := &refusal{issuer: g.Issuer, status: status, secrets: []string{form.Get("code"), form.Get("refresh_token"), form.Get("code_verifier"), g.Secret}}
		_ = json.Unmarshal(data, r) // without a reason the status remains
		return nil, r
	}
	t := &tokens{}
	if json.Unmarshal(data, t) != nil || t.AccessToken == "" || t.TokenType != "" && !strings.EqualFold(t.TokenType, "bearer") {
		return nil, fmt.Errorf("its authorization server %s does not return a bearer token", hostOf(g.Issuer))
	}
	if seconds, err := strconv.ParseFloat(strings.Trim(string(t.ExpiresIn), `"`), 64); err == nil && seconds > 0 {
		t.life = time.Duration(min(seconds, 10*365*24*3600) * float64(time.Second))
	}
	if t.Scope != nil {
		t.scopes = strings.Fields(*t.Scope)
	}
	return t, nil
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
	request.Header.Set("Accept", "application/json")
	if g.Auth == authBasic {
		request.SetBasicAuth(url.QueryEscape(g.ID), url.QueryEscape(g.Secret))
	}
	response, err := s.sender(a).Do(request)
	if err != nil {
		return 0, nil, plain(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err = io.ReadAll(io.LimitReader(response.Body, maxBody))
	return response.StatusCode, data, err
}
