package node

import (
	"context"
	"net/http"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewaymcp"
)

// facade returns the HTTP/1.1 handler of the gateway's port. It calls the gateway in
// this process through a client that obeys the caller's token. It responds to the
// preflight requests of browsers, which cannot have a token, before the guard. It tells the address
// of each request that the guard has admitted.
func (n *Node) facade(client harnessv1.GatewayServiceClient, guard *access.Guard, proven func(address string)) http.Handler {
	return gatewayhttp.New(gatewayhttp.Config{
		Gateway: client, CORS: n.cfg.CORS, Logger: n.cfg.Logger,
		MCP: gatewaymcp.Handler(gatewaymcp.Config{
			Gateway: client, Approves: func(ctx context.Context) bool { return access.TokenMay(ctx, access.Approve) },
		}),
		Guard: func(next http.Handler) http.Handler {
			admitted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				proven(r.RemoteAddr)
				next.ServeHTTP(w, r)
			})
			return guard.HTTP(admitted, gatewayhttp.WriteError)
		},
	})
}
