package gatewayhttp

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// AnyOrigin allows pages of all origins.
const AnyOrigin = "*"

const (
	corsMethods = "GET, HEAD, POST, PUT, DELETE"
	corsHeaders = "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Traceparent, Tracestate"
	corsExposed = "Location, Retry-After"
	// corsAge is how long a browser may cache a preflight, in seconds.
	corsAge = "600"
)

// CheckOrigins refuses an origin that no browser would send.
func CheckOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if origin == AnyOrigin || err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") &&
			origin == u.Scheme+"://"+u.Host && origin == strings.ToLower(origin) {
			continue
		}
		return fmt.Errorf("%q: expected an origin as browsers send it, such as https://app.example or http://localhost:5173, or *", origin)
	}
	return nil
}

// origins are the pages that may call.
type origins struct {
	all   bool
	named []string
	hosts []string
}

func newOrigins(cors []string) *origins {
	o := &origins{all: slices.Contains(cors, AnyOrigin), named: cors}
	for _, origin := range cors {
		if u, err := url.Parse(origin); err == nil && u.Host != "" {
			o.hosts = append(o.hosts, u.Hostname())
		}
	}
	return o
}

// before refuses foreign pages and answers preflights, and passes on other requests.
func (o *origins) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(o.named) > 0 && !o.all {
			w.Header().Add("Vary", "Origin") // also of a response without an allowed origin
		}
		if err := o.host(r); err != nil {
			WriteError(w, err)
			return
		}
		origin := r.Header.Get("Origin")
		if origin == "" || origin == "http://"+r.Host || origin == "https://"+r.Host {
			next.ServeHTTP(w, r)
			return
		}
		if !o.all && !slices.Contains(o.named, origin) {
			WriteError(w, refused("pages of %s may not call this gateway; to allow them, start it with --cors %s", clip(origin), clip(origin)))
			return
		}
		h := w.Header()
		if o.all {
			origin = AnyOrigin
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", corsMethods)
			h.Set("Access-Control-Allow-Headers", corsHeaders)
			h.Set("Access-Control-Max-Age", corsAge)
			if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
				h.Set("Access-Control-Allow-Private-Network", "true")
			}
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", corsExposed)
		next.ServeHTTP(w, r)
	})
}

// host refuses a request over loopback for a host name that any page could have pointed
// here: to a browser, that page would have the gateway's origin.
func (o *origins) host(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() || o.all {
		return nil
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if net.ParseIP(name) != nil || name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(o.hosts, name) {
		return nil
	}
	return refused("this gateway listens on this machine only and does not answer as %s: call 127.0.0.1 or localhost, "+
		"have the proxy set Host, or start it with --cors https://%s", clip(r.Host), clip(r.Host))
}

func refused(format string, args ...any) *fault.Error {
	return fault.New(codes.PermissionDenied, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, fmt.Sprintf(format, args...))
}
