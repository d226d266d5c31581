package node

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/frontdoor"
	"github.com/harnessmesh/harnessmesh/pkg/transport/roledoor"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
)

// Limits on HTTP clients. The facade bounds writing, for each answer and each event:
// events are streamed for as long as a run takes.
const (
	httpHeaderTime = 10 * time.Second
	// httpReadTime bounds the time to receive a request with its body, which may have files
	// of 20 MB; it does not apply to the response of a stream.
	httpReadTime = 2 * time.Minute
	httpIdleTime = 2 * time.Minute
	// httpStop is how long requests may take to end once the gateway is closed.
	httpStop = 2 * time.Second
)

// maxHeaders bounds the bytes of the headers of a call or an HTTP request.
const maxHeaders = 64 << 10

// openDoor serves gRPC and HTTP on the gateway's port, with TLS if configured, for callers
// with a token or the key, and for the callers of roles that processes of the mesh admit.
func (n *Node) openDoor(listener *frontdoor.BoundedListener, roles *roledoor.Door, clients tlsfiles.Clients) *roleServer {
	guard := access.NewGuard(n.keys.network)
	if n.keys.network == nil && !onLoopback(n.cfg.Listen) {
		guard = access.OpenGuard()
	}
	guard = guard.Within(n.limits())
	// Other calls of roles need a token as those of the gateway do.
	admission := guard.Only(func(ctx context.Context, method string) bool { return !roles.Takes(ctx, method) })
	n.recordKeyFile(listener.Addr().String(), n.keys.noted)
	var cfg *tls.Config
	if n.cfg.TLS != nil {
		cfg = n.cfg.TLS.Server(clients, frontdoor.Protocols...)
	}
	door := frontdoor.New(listener, cfg, n.cfg.Logger)
	options := slices.Concat(admission.ServerOptions(), roles.GatewayOptions(), n.telemetry.ServerOptions(), n.connectionOptions(), []grpc.ServerOption{
		grpc.Creds(tlsfiles.Accepted()), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxStreams),
	}, provenCalls(listener.Proven))
	s := newRoleServer(n.cfg.Logger, n.instance, n.observed.metrics, options...)
	client := harnessv1.NewGatewayServiceClient(guard.Confine(n.local.conn))
	web := &http.Server{
		Handler:           n.observed.metrics.HTTP(n.facade(client, guard, listener.Proven)),
		ReadHeaderTimeout: httpHeaderTime, ReadTimeout: httpReadTime, IdleTimeout: min(httpIdleTime, n.cfg.IdleTimeout), MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(n.cfg.Logger.Handler(), slog.LevelDebug),
	}
	n.pending = append(n.pending, func() {
		s.serve(door.GRPC())
		go func() { _ = web.Serve(door.HTTP()) }() // ends with the server, which reports nothing else
		door.Open()
	})
	// Closers run in reverse order: the gateway has ended its streams by then.
	n.closers = append(n.closers, func(ctx context.Context) error {
		door.Close()
		ctx, cancel := context.WithTimeout(ctx, httpStop)
		defer cancel()
		if web.Shutdown(ctx) != nil {
			_ = web.Close()
		}
		return nil
	})
	return s
}

// provenCalls are the options of a server, after those that admit calls, with which it passes the
// address of each admitted one on, but not of those of health, which need no token.
func provenCalls(proven func(address string)) []grpc.ServerOption {
	tell := func(ctx context.Context, method string) {
		if p, known := peer.FromContext(ctx); known && p.Addr != nil && !strings.HasPrefix(method, "/grpc.health.v1.") {
			proven(p.Addr.String())
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			tell(ctx, info.FullMethod)
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			tell(stream.Context(), info.FullMethod)
			return next(srv, stream)
		}),
	}
}
