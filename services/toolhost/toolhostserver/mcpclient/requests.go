package mcpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// tokens are those of the account of a server.
type tokens interface {
	// token returns the access token, empty if there is none. stale is one that was refused.
	token(ctx context.Context, stale string) (string, error)
	// want notes scopes that the token lacks.
	want(ctx context.Context, scopes []string)
}

// unsentError is the error of a request that the server has not taken, so that its call did not
// run.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// scopeError is the error of a request for which the token lacks scopes.
type scopeError struct{ scopes []string }

// Error names the scopes.
func (e scopeError) Error() string {
	return "the sign-in lacks rights: " + content.Line(content.Clean(strings.Join(e.scopes, " ")), 200)
}

// requests adds headers and the token, and bounds the bytes read of responses.
type requests struct {
	next http.RoundTripper
	// home is the address of the server, whose host alone gets headers and tokens.
	home    *url.URL
	headers http.Header
	tokens  tokens // nil: its headers have a token
	// unauthorized is set while the server wants a person to sign in.
	unauthorized *atomic.Bool
}

// RoundTrip carries out a request. If the server refuses its token, the request is sent again with
// a newer one, once.
func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	if !dial.SameOrigin(request.URL, r.home) { // a redirect
		response, err := r.carryOut(request.Clone(request.Context()))
		if err != nil {
			return nil, err
		}
		return bounded(response, request), nil
	}
	var token string
	var err error
	for range 2 {
		if r.tokens != nil {
			if token, err = r.tokens.token(request.Context(), token); err != nil {
				return nil, r.refused(request, nil, err)
			}
		}
		response, err := r.send(request, token)
		if err != nil {
			return nil, err
		}
		scopes, lacks := missingScopes(response)
		switch {
		case r.tokens != nil && lacks:
			r.tokens.want(request.Context(), scopes)
			return nil, r.refused(nil, response, scopeError{scopes})
		case response.StatusCode != http.StatusUnauthorized:
			r.unauthorized.Store(false)
			return bounded(response, request), nil
		case r.tokens == nil || token == "":
			return nil, r.refused(nil, response, signin.ErrNeeded)
		}
		_ = response.Body.Close()
		if way := deliveryOf(request.Context()); way != nil {
			way.sent.Store(false) // until it is sent again
		}
		if request.Body != nil {
			if request.GetBody == nil {
				break
			}
			if request.Body, err = request.GetBody(); err != nil {
				break
			}
		}
	}
	return nil, r.refused(nil, nil, signin.ErrNeeded) // a token that was issued just now
}

// send sends a request with a token.
func (r *requests) send(request *http.Request, token string) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, values := range r.headers {
		request.Header[name] = values
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return r.carryOut(request)
}

// carryOut sends a request unchanged.
func (r *requests) carryOut(request *http.Request) (*http.Response, error) {
	way := deliveryOf(request.Context())
	if way != nil && request.Method == http.MethodPost {
		request = way.trace(request)
	}
	response, err := r.next.RoundTrip(request)
	if err == nil && way != nil && request.Method == http.MethodPost {
		way.status.Store(int32(response.StatusCode)) //nolint:gosec // at most three digits
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return nil, unsentError{fmt.Errorf("its certificate cannot be verified: %w", certificate.Err)}
	}
	return response, err
}

// refused ends a request that the server has not taken.
func (r *requests) refused(request *http.Request, response *http.Response, err error) error {
	if request != nil && request.Body != nil {
		_ = request.Body.Close()
	}
	if response != nil {
		_ = response.Body.Close()
	}
	if errors.Is(err, signin.ErrNeeded) {
		r.unauthorized.Store(true)
	}
	return unsentError{err}
}

// missingScopes returns the scopes that a response names as missing.
func missingScopes(response *http.Response) (scopes []string, lacks bool) {
	if response.StatusCode != http.StatusForbidden {
		return nil, false
	}
	challenges, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, false
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			return strings.Fields(c.Params["scope"]), true
		}
	}
	return nil, false
}

// explainRequest returns the cause of a failed request, without its address, which may have a
// secret.
func explainRequest(err error) error {
	var unsent unsentError
	if errors.As(err, &unsent) {
		return unsent.error
	}
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
