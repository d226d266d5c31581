package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

// APILevel is the level of what processes of one user expect of each other: of the local
// socket, its services and the data directory. Programs of one level work together, whatever
// their builds. A program of a higher level replaces a process of a lower one.
var APILevel = levelOf(apiLevel)

// apiLevel is the level. Tests link programs of other levels.
var apiLevel = "1"

func levelOf(text string) int {
	level, err := strconv.Atoi(text)
	if err != nil || level < 1 {
		panic("node.apiLevel: " + text + ": expected a number from 1")
	}
	return level
}

// Background is what a node has more as the background process of a user.
type Background struct {
	// Service is served at the local socket.
	Service harnessv1.LocalServiceServer

	clients atomic.Int64
}

// Environments are the variables of runs that clients have given. Without any, a run of the
// background process has none of a provider, and a run of another process has those of the process.
type Environments struct {
	// Provider returns the variables of model providers that a client has given a run,
	// NAMESPACE/RUN; nil if none has. Sub-agents have those of their root.
	Provider func(run string) map[string]string
	// Commands returns the environment of the commands of a run, NAMESPACE/RUN, as NAME=VALUE;
	// nil if it is not known: then that of its root, else that of the process.
	Commands func(run string) []string
	// Deleted is called for a run, NAMESPACE/RUN, that was deleted.
	Deleted func(run string)

	mu    sync.Mutex
	roots map[string]string // by run; at most maxRoots
}

// Bounds of the search for roots.
const (
	maxRoots = 4096
	rootTime = 5 * time.Second
)

// root returns the run at the top of the tree of a run, both NAMESPACE/RUN: a root itself, and a
// run that is not stored.
func (b *Environments) root(ctx context.Context, gateway harnessv1.GatewayServiceClient, run string) (string, error) {
	b.mu.Lock()
	root, known := b.roots[run]
	b.mu.Unlock()
	if known {
		return root, nil
	}
	ctx, cancel := context.WithTimeout(ctx, rootTime)
	defer cancel()
	namespace, id, _ := strings.Cut(run, "/")
	r, err := gateway.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: namespace, RunId: id})
	if err != nil && status.Code(err) != codes.NotFound {
		return "", fmt.Errorf("the root of run %s: %w", run, err)
	}
	if root = run; r.GetRun().GetRootRunId() != "" {
		root = RunName(namespace, r.GetRun().GetRootRunId())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.roots == nil || len(b.roots) >= maxRoots {
		b.roots = map[string]string{}
	}
	b.roots[run] = root
	return root, nil
}

// variables returns the variables of model providers of a run, which are those of its root.
func (b *Environments) variables(ctx context.Context, gateway harnessv1.GatewayServiceClient, run string) (map[string]string, error) {
	if own := b.Provider(run); own != nil {
		return own, nil
	}
	root, err := b.root(ctx, gateway, run)
	if err != nil {
		return nil, err
	}
	return b.Provider(root), nil
}

// commandsOf returns the environment of the commands of a run, which is that of its root.
func (n *Node) commandsOf(run string) []string {
	b := n.cfg.Environments
	if own := b.Commands(run); own != nil {
		return own
	}
	root, err := b.root(context.Background(), n.gateway, run)
	if err != nil {
		n.cfg.Logger.Warn("a command has the environment of this process", "run", run, "error", err)
		return nil
	}
	return b.Commands(root)
}

// Clients returns the open connections to the local socket.
func (b *Background) Clients() int { return int(b.clients.Load()) }

// register adds the service to the local server.
func (b *Background) register(s *grpc.Server) {
	if b != nil {
		harnessv1.RegisterLocalServiceServer(s, b.Service)
	}
}

// listen returns a listener that counts connections.
func (b *Background) listen(l net.Listener) net.Listener {
	if b == nil {
		return l
	}
	return &countingListener{Listener: l, open: &b.clients}
}

// options forget the environment of a run that is deleted.
func (b *Environments) options() []grpc.ServerOption {
	if b == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		answer, err := next(ctx, req)
		if r, deletes := req.(*harnessv1.DeleteRunRequest); deletes && err == nil {
			b.Deleted(RunName(r.GetNamespace(), r.GetRunId()))
		}
		return answer, err
	})}
}

// RunName returns NAMESPACE/RUN; an empty namespace is default.
func RunName(namespace, run string) string {
	if namespace == "" {
		namespace = "default"
	}
	return namespace + "/" + run
}

type countingListener struct {
	net.Listener
	open *atomic.Int64
}

// Accept counts a connection until it is closed.
func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	if unix, ok := conn.(*net.UnixConn); ok {
		return &countedConn{UnixConn: unix, open: l.open}, nil
	}
	return conn, nil
}

type countedConn struct {
	*net.UnixConn
	open *atomic.Int64
	once sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.UnixConn.Close()
}

// unixConn returns the connection to the local socket; ok is false for any other.
func unixConn(conn net.Conn) (unix *net.UnixConn, ok bool) {
	if counted, is := conn.(*countedConn); is {
		return counted.UnixConn, true
	}
	unix, ok = conn.(*net.UnixConn)
	return unix, ok
}

// runModels is a model that each run reaches with the variables that its client has given, or with
// those of this process if it may.
type runModels struct {
	n    *Node
	ref  string
	mu   sync.Mutex
	open map[[sha256.Size]byte]model.Provider
}

// Complete makes one try with the variables of the run of ctx.
func (m *runModels) Complete(ctx context.Context, req *model.Request, delta func(model.Delta)) (*model.Response, error) {
	p, err := m.provider(ctx, model.RunOf(ctx))
	if err != nil {
		return nil, err
	}
	return p.Complete(ctx, req, delta)
}

// maxOpenModels bounds the providers of one model that are kept: one for each environment.
const maxOpenModels = 64

func (m *runModels) provider(ctx context.Context, run string) (model.Provider, error) {
	variables, err := m.n.cfg.Environments.variables(ctx, m.n.gateway, run)
	if err != nil {
		return nil, err
	}
	lookUp := func(name string) string { return variables[name] }
	if variables == nil && m.n.cfg.Background == nil {
		lookUp = m.n.cfg.ModelEnv
	}
	key := sha256.Sum256(fmt.Append(nil, variables == nil, variables)) // fmt sorts a map
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.open[key]; p != nil {
		return p, nil
	}
	p, _, err := provider.OpenFrom(m.n.cfg.Catalogue, m.ref, lookUp, m.n.scripts())
	if err != nil {
		text := err.Error()
		if len(variables) == 0 && m.n.cfg.Background != nil {
			text += "; the run's terminal is gone: harness resume gives it that of another one"
		}
		return nil, &model.Error{RetryAfter: -1, NoKey: true, Message: text, Err: err}
	}
	if m.open == nil || len(m.open) >= maxOpenModels {
		m.open = map[[sha256.Size]byte]model.Provider{}
	}
	m.open[key] = p
	return p, nil
}
