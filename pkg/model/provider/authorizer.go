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
	res, refused, err := a.send(a.authorized(req, token), token)
	if !refused || fresh || req.Body != nil && req.GetBody == nil {
		return res, err
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
	res, _, err = a.send(again, token)
	return res, err
}

// send sends a request with a token, and drops the token if it is refused.
func (a *authorizer) send(req *http.Request, token string) (res *http.Response, refused bool, err error) {
	if res, err = a.next.RoundTrip(req); err != nil {
		return nil, false, err
	}
	if refused = res.StatusCode == http.StatusUnauthorized; refused {
		a.tokens.drop(token)
	}
	return res, refused, nil
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
