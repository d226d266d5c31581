package access

import "net/http"

// HTTP lets requests through that come with `Authorization: Bearer TOKEN`, and has
// refuse answer others with UNAUTHENTICATED. Which namespaces the token is for is checked
// by a client over Confine, which the handler calls. What has to pass without a token, such
// as the preflights of browsers, stands outside.
func (g *Guard) HTTP(next http.Handler, refuse func(http.ResponseWriter, error)) http.Handler {
	if g.tokens == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := g.caller(r.Header.Values("Authorization"))
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="harness"`)
			refuse(w, err)
			return
		}
		inner := r.WithContext(with(r.Context(), caller))
		next.ServeHTTP(w, inner)
		r.Pattern = inner.Pattern // for whoever counts requests by route, outside
	})
}
