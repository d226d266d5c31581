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
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// maxBody bounds the bytes read of a response.
const maxBody = 1 << 20

// discovery is what a server and its authorization server publish.
type discovery struct {
	resource string
	scopes   []string
	server   *oauthex.AuthServerMeta
}

// client returns an HTTP client for the sign-in at a server, which keeps no connection: there are
// few requests.
func (s *SignIns) client(a Account) *http.Client {
	c := s.config.Dialer(a.Address, a.Local).Client()
	if t, ok := c.Transport.(*http.Transport); ok {
		t.DisableKeepAlives = true
	}
	return c
}

// reader returns the client for metadata. It follows redirects, with the rules of the dialer for
// each, and none from https to http or to an address that is not secure.
func (s *SignIns) reader(a Account) *http.Client {
	c := s.client(a)
	follow := c.CheckRedirect
	c.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
			return errors.New("a redirect from https to http")
		}
		if err := secure(next.URL.String()); err != nil {
			return err
		}
		return follow(next, via)
	}
	return c
}

// sender returns the client for requests with credentials. It follows no redirect.
func (s *SignIns) sender(a Account) *http.Client {
	c := s.client(a)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// discover finds out where a person signs in at a server.
func (s *SignIns) discover(ctx context.Context, a Account) (*discovery, error) {
	if err := secure(a.Address); err != nil {
		return nil, err
	}
	metadata, scopes, asked, err := s.challenge(ctx, a)
	if err != nil {
		return nil, err
	}
	d := &discovery{resource: a.Address, scopes: scopes}
	described, err := s.described(ctx, a, metadata)
	var issuer string
	switch {
	case err != nil:
		return nil, err
	case described != nil:
		d.resource, issuer = described.Resource, described.AuthorizationServers[0]
		if len(d.scopes) == 0 {
			d.scopes = described.ScopesSupported
		}
	case !asked:
		return nil, errors.New("it asks for no sign-in, and names no authorization server")
	default: // protocol version 2025-03-26: the server is its authorization server
		u, _ := url.Parse(a.Address)
		issuer = u.Scheme + "://" + u.Host
	}
	d.server, err = auth.GetAuthServerMetadata(ctx, issuer, s.reader(a))
	if err != nil {
		return nil, fmt.Errorf("its authorization server %s: %w", hostOf(issuer), plain(err))
	}
	if d.server == nil {
		d.server = &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register",
			CodeChallengeMethodsSupported: []string{"S256"},
		}
	}
	if d.server.AuthorizationEndpoint == "" || d.server.TokenEndpoint == "" {
		return nil, fmt.Errorf("its authorization server %s names no endpoint for tokens, or none for persons", hostOf(issuer))
	}
	if !slices.Contains(d.server.CodeChallengeMethodsSupported, "S256") {
		return nil, fmt.Errorf("its authorization server %s does not support PKCE with S256", hostOf(issuer))
	}
	return d, nil
}

// hello are requests without a token: that with which clients of older versions begin, and one of 2026-07-28,
// for servers that do not know the first or answer it to every client.
var hello = []struct {
	body   string
	header map[string]string
}{
	{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"harnessmesh","version":"1"}}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"harnessmesh","version":"1"}}}}`,
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}},
}

// challenge calls the server without a token, and returns what it asks for.
func (s *SignIns) challenge(ctx context.Context, a Account) (metadata string, scopes []string, asked bool, err error) {
	var response *http.Response
	for _, h := range hello {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Address, strings.NewReader(h.body))
		if err != nil {
			return "", nil, false, errors.New("its address cannot be parsed")
		}
		for name, values := range a.Headers {
			request.Header[name] = values
		}
		for name, value := range h.header {
			request.Header.Set(name, value)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if response, err = s.sender(a).Do(request); err != nil {
			return "", nil, false, plain(err)
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusUnauthorized {
			break
		}
	}
	if response.StatusCode != http.StatusUnauthorized {
		return "", nil, false, nil
	}
	challenges, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	if err != nil {
		return "", nil, true, nil //nolint:nilerr // the well-known addresses remain
	}
	for _, c := range challenges {
		if c.Params["resource_metadata"] != "" && metadata == "" {
			metadata = c.Params["resource_metadata"]
		}
		if c.Scheme == "bearer" && scopes == nil {
			scopes = strings.Fields(c.Params["scope"])
		}
	}
	return metadata, scopes, true, nil
}

// described returns how a server describes itself, nil if it does not: at the address that its
// challenge has, at the well-known one of its path, or at that of its host.
func (s *SignIns) described(ctx context.Context, a Account, metadata string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(a.Address)
	if err != nil {
		return nil, errors.New("its address cannot be parsed")
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := u.Scheme + "://" + u.Host + wellKnown
	places := []string{root + strings.TrimSuffix(path.Join("/", u.Path), "/"), root}
	if metadata != "" {
		places = append([]string{metadata}, places...)
	}
	var mismatch error
	for _, place := range slices.Compact(places) {
		found, err := s.metadata(ctx, a, place)
		switch {
		case err != nil:
			return nil, fmt.Errorf("its metadata at %s: %w", hostOf(place), err)
		case found == nil:
		case !covers(found.Resource, a.Address):
			mismatch = fmt.Errorf("its metadata is for %q and not for its address", content.Clip(found.Resource, 200))
		case len(found.AuthorizationServers) == 0:
			return nil, errors.New("its metadata names no authorization server")
		default:
			return found, secure(found.AuthorizationServers[0])
		}
	}
	return nil, mismatch
}

// metadata reads the metadata of a server; nil if there is none.
func (s *SignIns) metadata(ctx context.Context, a Account, place string) (*oauthex.ProtectedResourceMetadata, error) {
	if err := secure(place); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, errors.New("its address cannot be parsed")
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.reader(a).Do(request)
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 == 4 {
		return nil, nil
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, plain(err)
	}
	found := &oauthex.ProtectedResourceMetadata{}
	if json.Unmarshal(data, found) != nil || found.Resource == "" {
		if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) { // a page for people at every address
			return nil, nil
		}
		return nil, errors.New("it is not in the form of RFC 9728")
	}
	return found, nil
}
