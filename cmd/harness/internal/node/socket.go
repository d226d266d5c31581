package node

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// socketCredentials are the transport of the server for this machine. They encrypt
// nothing, and record which connections come through the local socket instead of from
// inside this process.
type socketCredentials struct {
	credentials.TransportCredentials
	// admit returns why a process may not use the socket; nil admits every process.
	admit func(pid int) error
}

func newSocketCredentials(admit func(pid int) error) socketCredentials {
	return socketCredentials{insecure.NewCredentials(), admit}
}

// ServerHandshake keeps a refused connection open, so that its calls fail with the reason.
func (c socketCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	unix, ok := unixConn(conn)
	if !ok {
		return conn, nil, nil
	}
	var info socketPeer
	if err := sameUser(unix); err != nil {
		info.refused = err
	} else if c.admit != nil {
		pid, err := peerPID(unix)
		if err == nil {
			err = c.admit(pid)
		}
		info.refused = err
	}
	return conn, info, nil
}

// Clone returns the same credentials.
func (c socketCredentials) Clone() credentials.TransportCredentials { return c }

// socketPeer is a process at the local socket.
type socketPeer struct{ refused error }

// AuthType returns the name of the socket's check.
func (socketPeer) AuthType() string { return "harness-socket" }

// throughSocket returns the peer of a call that came through the local socket.
func throughSocket(ctx context.Context) (socketPeer, bool) {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return socketPeer{}, false
	}
	at, ok := p.AuthInfo.(socketPeer)
	return at, ok
}

// socketOptions make the local server require the key of calls through the socket, and
// refuse those of refused processes. Calls from inside this process need nothing.
func (n *Node) socketOptions() []grpc.ServerOption {
	refused := func(ctx context.Context) error {
		if p, _ := throughSocket(ctx); p.refused != nil {
			return status.Error(codes.PermissionDenied, p.refused.Error())
		}
		return nil
	}
	limits := access.Limits{}
	if n.mesh.shared() { // another process opens the models
		limits = n.limits()
	}
	guard := access.NewGuard(n.keys.socket).Within(limits).Only(func(ctx context.Context, _ string) bool {
		_, outside := throughSocket(ctx)
		return outside
	})
	return append(guard.ServerOptions(),
		grpc.Creds(newSocketCredentials(n.keys.admits)),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := refused(ctx); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := refused(stream.Context()); err != nil {
				return err
			}
			return next(srv, stream)
		}),
	)
}
