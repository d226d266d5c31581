package provider

import "net/http"

// authorizer sends requests with the token of a program. A request that the provider
// refuses with 401 is sent a second time, with a new token, if its token was not new.
type authorizer struct {
	next   http.RoundTripper
	tokens *tokenSource
	header string // empty: Authorization, with Bearer
}

// RoundTrip sends a request.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, fresh, err := a.tokens.get(req.Context())
	if err != nil {
		return nil, refuse(req, err)
	}
	res, err := a.next.RoundTrip(a.authorized(req, token))
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	a.tokens.drop(token)
	if fresh || req.Body != nil && req.GetBody == nil {
		return res, nil
	}
	_ = res.Body.Close()
	if token, _, err = a.tokens.get(req.Context()); err != nil {
		return nil, err
	}
	again := a.authorized(req, token)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return a.next.RoundTrip(again)
}

// authorized returns a copy of a request with a token.
func (a *authorizer) authorized(req *http.Request, token string) *http.Request {
	out := req.Clone(req.Context())
	if a.header == "" {
		out.Header.Set("Authorization", "Bearer "+token)
	} else {
		out.Header.Set(a.header, token)
	}
	return out
}

// refuse closes the body of a request that is not sent, as http.RoundTripper requires.
func refuse(req *http.Request, err error) error {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return err
}

// CloseIdleConnections is called by http.Client.
func (a *authorizer) CloseIdleConnections() {
	if next, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
