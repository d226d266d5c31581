package access

import (
	"net/http"
	"strings"
)

// HTTP passes requests with `Authorization: Bearer TOKEN` to next and answers any other
// through refuse with UNAUTHENTICATED. The namespaces of the token are checked by a
// client over Confine, which the handler calls. Requests that need no token, such as the
// preflights of browsers, must not go through it.
func (g *Guard) HTTP(next http.Handler, refuse func(http.ResponseWriter, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admitted, err := g.admit(r.Header.Values("Authorization"))
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="harness"`)
			refuse(w, err)
			return
		}
		ctx, release, err := g.hold(r.Context(), admitted, ends(r))
		if err != nil {
			refuse(w, err)
			return
		}
		defer release()
		inner := r.WithContext(with(ctx, admitted.caller))
		next.ServeHTTP(w, inner)
		r.Pattern = inner.Pattern // for middleware outside that counts requests by route
	})
}

// ends reports whether a request ends or interrupts a run: a holder with as many open streams as it may have can still
// send it.
func ends(r *http.Request) bool {
	return r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/cancel") || strings.HasSuffix(r.URL.Path, "/interrupt"))
}
