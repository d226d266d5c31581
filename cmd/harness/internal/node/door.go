package node

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/frontdoor"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
)

// Limits on HTTP clients. The facade bounds writing, for each answer and each event:
// events are streamed for as long as a run takes.
const (
	httpHeaderTime = 10 * time.Second
	// httpReadTime bounds the time to receive a request with its body, which may have files
	// of 20 MB; it does not apply to the response of a stream.
	httpReadTime   = 2 * time.Minute
	httpIdleTime   = 2 * time.Minute
	httpHeaderSize = 64 << 10
	// httpStop is how long requests may take to end once the gateway is closed.
	httpStop = 2 * time.Second
)

// openDoor serves gRPC and HTTP on the gateway's port, with TLS and tokens if
// configured.
func (n *Node) openDoor(listener net.Listener, register func(grpc.ServiceRegistrar)) *roleServer {
	guard := access.NewGuard(n.cfg.Tokens)
	var cfg *tls.Config
	if n.cfg.TLS != nil {
		cfg = n.cfg.TLS.Server(false, frontdoor.Protocols...)
	}
	door := frontdoor.New(listener, cfg, n.cfg.Logger)
	s := newRoleServer(n.cfg.Logger, n.instance, n.observed.metrics, slices.Concat(guard.ServerOptions(), n.telemetry.ServerOptions(), []grpc.ServerOption{
		grpc.Creds(tlsfiles.Accepted()), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxStreams),
	})...)
	register(s.grpc)
	client := harnessv1.NewGatewayServiceClient(access.Confine(n.local.conn))
	web := &http.Server{
		Handler:           n.observed.metrics.HTTP(n.facade(client, guard)),
		ReadHeaderTimeout: httpHeaderTime, ReadTimeout: httpReadTime, IdleTimeout: httpIdleTime, MaxHeaderBytes: httpHeaderSize,
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
