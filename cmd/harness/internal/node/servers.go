package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/test/bufconn"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// servers are the gRPC servers of a node: one for this machine with every role of the
// node, and one for each role that listens on TCP.
type servers struct {
	logger *slog.Logger
	socket string
	inside *bufconn.Listener
	all    []*roleServer
	conn   *grpc.ClientConn
}

// roleServer is a gRPC server with health and reflection.
type roleServer struct {
	grpc   *grpc.Server
	health *health.Server
	served chan struct{}
}

func newRoleServer(logger *slog.Logger, instance string, m *telemetry.Metrics, more ...grpc.ServerOption) *roleServer {
	options := slices.Concat(
		[]grpc.ServerOption{
			grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
			// Clients of proxies ping more often than the default allows.
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		},
		m.ServerOptions(), fault.ServerOptions(logger), more, // of a bound that is set twice the later one counts
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(onlyAddressed(instance))},
	)
	s := &roleServer{grpc: grpc.NewServer(options...), health: health.NewServer(), served: make(chan struct{})}
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s
}

// serve accepts on listeners until the server is stopped.
func (s *roleServer) serve(listeners ...net.Listener) {
	go func() {
		defer close(s.served)
		ended := make(chan struct{}, len(listeners))
		for _, l := range listeners {
			go func() {
				_ = s.grpc.Serve(l) // ends with the server, which reports nothing else
				ended <- struct{}{}
			}()
		}
		for range listeners {
			<-ended
		}
	}()
}

// bufferSize is the buffer of the in-process listener.
const bufferSize = 1 << 20

// socketPath returns a short path for any data directory: a socket's path has at most
// 107 bytes.
func socketPath(data string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("harness-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("socket directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("socket directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("socket directory %s is accessible to other users: remove it, or set TMPDIR", dir)
	}
	sum := sha256.Sum256([]byte(data))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".sock"), nil
}

// listen opens the local socket. The caller has locked the directory, so an existing
// socket belongs to a dead process.
func (n *Node) listen() error {
	path, err := socketPath(n.cfg.Data)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("old socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("local socket: %w", err)
	}
	s := &servers{logger: n.cfg.Logger, socket: path, inside: bufconn.Listen(bufferSize)}
	n.local = s
	local := newRoleServer(n.cfg.Logger, n.instance, n.observed.metrics, n.telemetry.ServerOptions()...)
	s.all = append(s.all, local)
	s.conn, err = grpc.NewClient("passthrough:///inside", dialOptions(
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.inside.DialContext(ctx) }),
	)...)
	if err != nil {
		_ = listener.Close()
		return err
	}
	n.closers = append(n.closers, func(context.Context) error { return s.conn.Close() })
	n.pending = append(n.pending, func() { local.serve(listener, s.inside) })
	n.unserved = append(n.unserved, listener)
	return nil
}

// register adds a role to the local server and, if the node listens on TCP, to a
// separate server.
func (n *Node) register(spec *roleSpec, service *service) error {
	local := n.local.all[0]
	service.register(local.grpc)
	if n.cfg.Listen == "" {
		n.mesh.add(spec, service, "unix:"+n.local.socket, local)
		return nil
	}
	address := n.cfg.Listen
	if !spec.public {
		host, _, err := net.SplitHostPort(n.cfg.Listen)
		if err != nil {
			return fmt.Errorf("--listen: %q: expected HOST:PORT, such as 127.0.0.1:7447", n.cfg.Listen)
		}
		if n.private(host) {
			host = "127.0.0.1"
		}
		if len(n.cfg.Roles) > 1 {
			address = net.JoinHostPort(host, "0")
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; use another port, such as 127.0.0.1:0 for a free one", err)
		}
		return fmt.Errorf("--listen: %w", err)
	}
	n.unserved = append(n.unserved, listener)
	var s *roleServer
	if spec.public {
		s = n.openDoor(listener, service.register)
	} else {
		s = newRoleServer(n.cfg.Logger, n.instance, n.observed.metrics, append(n.roleCredentials(), n.telemetry.ServerOptions()...)...)
		service.register(s.grpc)
		n.pending = append(n.pending, func() { s.serve(listener) })
	}
	n.local.all = append(n.local.all, s)
	at := listener.Addr().String()
	if n.cfg.Advertise != "" {
		_, port, err := net.SplitHostPort(at)
		if err != nil {
			return fmt.Errorf("--advertise: %w", err)
		}
		at = net.JoinHostPort(n.cfg.Advertise, port)
	}
	if !spec.public && n.cfg.TLS != nil && n.mesh.shared() {
		host, _, _ := net.SplitHostPort(at)
		if err := n.cfg.TLS.Check(host); err != nil {
			return err
		}
	}
	n.mesh.add(spec, service, at, s)
	return nil
}

// private reports whether a role next to the gateway is for this machine only: without
// an external bus no other process has to reach it, and it checks no tokens.
func (n *Node) private(host string) bool {
	ip := net.ParseIP(host)
	if n.cfg.TLS != nil && n.cfg.TLS.Mutual() {
		return false
	}
	return len(n.cfg.Roles) > 1 && n.cfg.NATS == "" &&
		host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// roleCredentials are the server credentials of a role that other roles call.
func (n *Node) roleCredentials() []grpc.ServerOption {
	if n.cfg.TLS == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.Creds(n.cfg.TLS.ServerCredentials(n.cfg.TLS.Mutual(), n.cfg.Logger))}
}

// dialCredentials are the client credentials of roles that call each other.
func (n *Node) dialCredentials() credentials.TransportCredentials {
	if n.cfg.TLS == nil {
		return nil
	}
	return n.cfg.TLS.ClientCredentials()
}

// serveAll starts to accept connections. No role is ready yet.
func (n *Node) serveAll() {
	for _, s := range n.local.all {
		s.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	}
	for _, f := range n.pending {
		f()
	}
	n.pending, n.unserved = nil, nil
}

// stop ends all servers and waits for them.
func (s *servers) stop() {
	for _, r := range s.all {
		r.grpc.Stop()
	}
	_ = os.Remove(s.socket)
}
