package access

import (
	"encoding/json"
	"net/http"
	"slices"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// HTTP lets requests through that come with `Authorization: Bearer TOKEN`, and
// answers others with 401. Which namespaces the token is for is checked by a client
// over Confine, which the handler calls.
//
// The paths in open need no token, and neither do a browser's preflight requests,
// which cannot have one. cors are the origins that may read a refusal.
func (g *Guard) HTTP(next http.Handler, cors []string, open ...string) http.Handler {
	if g.tokens == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
		if preflight || slices.Contains(open, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		caller, err := g.caller(r.Header.Values("Authorization"))
		if err != nil {
			allowOrigin(w, r, cors)
			w.Header().Set("WWW-Authenticate", `Bearer realm="harness"`)
			WriteError(w, http.StatusUnauthorized, err)
			return
		}
		inner := r.WithContext(with(r.Context(), caller))
		next.ServeHTTP(w, inner)
		r.Pattern = inner.Pattern // for whoever counts requests by route, outside
	})
}

func allowOrigin(w http.ResponseWriter, r *http.Request, cors []string) {
	origin := r.Header.Get("Origin")
	switch {
	case origin == "":
	case slices.Contains(cors, "*"):
		w.Header().Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(cors, origin):
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Add("Vary", "Origin")
	}
}

// WriteError writes a gRPC error as JSON:
// {"error":{"code","reason","message","field"}}.
func WriteError(w http.ResponseWriter, statusCode int, err error) {
	st := status.Convert(err)
	type body struct {
		Code    string `json:"code"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
		Field   string `json:"field"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(statusCode)
	_ = json.NewEncoder(w).Encode(map[string]body{"error": {
		Code: code.Code(st.Code()).String(), Reason: fault.ReasonOf(err), Message: st.Message(), //nolint:gosec // codes are few
	}})
}
