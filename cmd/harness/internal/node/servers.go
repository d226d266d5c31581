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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/test/bufconn"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// servers are the gRPC servers of a node, each with every role of it: one for this machine,
// and the front if the node listens on TCP.
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

// maxSocketDir bounds the directory of a socket, whose path has at most 107 bytes.
const maxSocketDir = 80

// socketPath returns a short path for any data directory and owner: a socket's path has at most
// 107 bytes. It is in the first directory that is short enough and that only this user can use: a
// TMPDIR may be long, and another user may have made the one in /tmp.
func socketPath(data, owner string) (string, error) {
	name := fmt.Sprintf("harness-%d", os.Getuid())
	var refused []string
	for _, dir := range []string{
		filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "harness"), filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name), filepath.Join(data, "socket"),
	} {
		if !filepath.IsAbs(dir) || len(dir) > maxSocketDir {
			continue
		}
		if err := ownDirectory(dir); err != nil {
			refused = append(refused, err.Error())
			continue
		}
		sum := sha256.Sum256([]byte(owner))
		return filepath.Join(dir, hex.EncodeToString(sum[:8])+".sock"), nil
	}
	return "", fmt.Errorf("no directory for the local socket (%s): set XDG_RUNTIME_DIR to one of at most %d bytes that only you can use",
		strings.Join(refused, "; "), maxSocketDir-len("/harness"))
}

// ownDirectory makes a directory that only this user can use, and fails if it is another one.
func ownDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is accessible to other users", dir)
	}
	return nil
}

// listen opens the local socket. The caller has locked the directory, so an existing
// socket belongs to a dead process. Without the lock the socket is that of the process alone.
func (n *Node) listen() error {
	owner := n.cfg.Data
	if n.lock == nil {
		owner += "\x00" + strconv.Itoa(os.Getpid())
	}
	path, err := socketPath(n.cfg.Data, owner)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("old socket: %w", err)
	}
	removeStaleSockets(filepath.Dir(path), time.Now())
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("local socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return fmt.Errorf("local socket: %w", err)
	}
	s := &servers{logger: n.cfg.Logger, socket: path, inside: bufconn.Listen(bufferSize)}
	n.local = s
	local := newRoleServer(n.cfg.Logger, n.instance, n.observed.metrics, slices.Concat(n.socketOptions(), n.telemetry.ServerOptions(), n.cfg.Environments.options())...)
	n.cfg.Background.register(local.grpc)
	n.recordKeyFile("unix:"+path, n.keys.socket != nil)
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
	n.pending = append(n.pending, func() { local.serve(n.cfg.Background.listen(listener), s.inside) })
	n.unserved = append(n.unserved, listener)
	return nil
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

// lastEvents is the time that watchers have to read the stored events when the servers end.
// A watcher of a parked or ended run ends by itself after the last event.
const lastEvents = 500 * time.Millisecond

// finish accepts no more requests, and lets those in progress end for lastEvents.
func (s *servers) finish() {
	var ending sync.WaitGroup
	for _, r := range s.all {
		ending.Go(r.grpc.GracefulStop)
	}
	ended := make(chan struct{})
	go func() { ending.Wait(); close(ended) }()
	timer := time.NewTimer(lastEvents)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// stop ends all servers and waits for them.
func (s *servers) stop() {
	for _, r := range s.all {
		r.grpc.Stop()
	}
	_ = os.Remove(s.socket)
}
