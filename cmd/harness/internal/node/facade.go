package node

import (
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/access"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// openPaths of the HTTP side need no token: they say nothing of any run.
var openPaths = []string{"/", "/openapi.json"}

// facade is what the gateway's port serves over HTTP/1.1. It calls the gateway in
// this process through a client that obeys the caller's token.
func (n *Node) facade(harnessv1.GatewayServiceClient) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"service":"harnessmesh gateway","api":"/v1","openapi":"/openapi.json"}` + "\n"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		access.WriteError(w, http.StatusNotFound, status.Errorf(codes.NotFound, "there is nothing at %s %s: see /openapi.json", r.Method, r.URL.Path))
	})
	return mux
}
