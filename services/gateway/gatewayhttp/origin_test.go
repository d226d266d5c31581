package gatewayhttp_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
)

const page = "https://app.example"

// locked configures a gateway that refuses requests without a token.
func locked(c *gatewayhttp.Config) {
	c.Guard = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer t" {
				gatewayhttp.WriteError(w, status.Error(codes.Unauthenticated, "missing token"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestPagesOfOtherOriginsAreRefusedUnlessNamed(t *testing.T) {
	for _, c := range []struct {
		name        string
		cors        []string
		origin      string
		status      int
		allowOrigin string
	}{
		{"by default", nil, page, 403, ""},
		{"an origin that is not named", []string{"https://other.example"}, page, 403, ""},
		{"a named one", []string{"https://other.example", page}, page, 200, page},
		{"all", []string{"*"}, page, 200, "*"},
		{"a file, or a page in a sandbox", []string{page}, "null", 403, ""},
		{"no page", []string{page}, "", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, func(config *gatewayhttp.Config) { config.CORS = c.cors })
			var header []string
			if c.origin != "" {
				header = []string{"Origin", c.origin}
			}
			a := b.get("/v1/runs", header...)
			if a.status != c.status || a.header.Get("Access-Control-Allow-Origin") != c.allowOrigin || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%+v", a)
			}
			if c.status == 403 && !strings.Contains(a.problem(t)["message"].(string), "start it with --cors "+c.origin) {
				t.Errorf("%s", a.body)
			}
		})
	}
}

func TestAPreflightNeedsNoToken(t *testing.T) {
	b := newBed(t, locked, func(c *gatewayhttp.Config) { c.CORS = []string{page} })
	a := b.do(http.MethodOptions, "/v1/runs/r/events", "", "Origin", page, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "last-event-id")
	if a.status != http.StatusNoContent || a.header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("%+v", a)
	}
	for _, header := range []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"} {
		if !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), header) {
			t.Errorf("%s is not allowed: %v", header, a.header)
		}
	}
	// The page can also read why it is refused.
	if a := b.get("/v1/runs", "Origin", page); a.status != 401 || a.header.Get("Access-Control-Allow-Origin") != page || a.problem(t)["code"] != "UNAUTHENTICATED" {
		t.Errorf("%+v", a)
	}
	if a := b.get("/v1/runs", "Origin", page, "Authorization", "Bearer t"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if a := b.get("/openapi.json"); a.status != 200 {
		t.Errorf("the description: %+v", a)
	}
	if a := b.get("/nothing"); a.status != 401 {
		t.Errorf("an unknown path: %+v", a)
	}
}

// A page whose host name resolves to this machine would have the gateway's origin.
func TestOnLoopbackAForeignNameIsRefused(t *testing.T) {
	b := newBed(t, func(c *gatewayhttp.Config) { c.CORS = []string{page} })
	for host, want := range map[string]int{
		"evil.example": 403, "evil.example:7447": 403, "localhost": 200, "LOCALHOST:7447": 200, "gateway.localhost": 200, "127.0.0.1:7447": 200,
		"[::1]:7447": 200, "app.example": 200, "localhost.evil.example": 403,
	} {
		if a := b.get("/v1/runs", "Host", host); a.status != want {
			t.Errorf("%s: %+v", host, a)
		}
	}
}

func TestOrigins(t *testing.T) {
	if err := gatewayhttp.CheckOrigins([]string{"*", page, "http://localhost:5173"}); err != nil {
		t.Error(err)
	}
	for _, origin := range []string{"", "app.example", "https://app.example/", "https://App.example", "ftp://app.example", "https://", "null", "https://*.example/x"} {
		if gatewayhttp.CheckOrigins([]string{origin}) == nil {
			t.Errorf("%q was taken", origin)
		}
	}
}
