package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

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
	// Environment returns the variables of model providers that a client has given a run,
	// NAMESPACE/RUN.
	Environment func(run string) map[string]string
	// Commands returns the environment of the commands of a run, NAMESPACE/RUN, as NAME=VALUE;
	// nil: that of the process.
	Commands func(run string) []string
	// Deleted is called for a run, NAMESPACE/RUN, that was deleted.
	Deleted func(run string)

	clients atomic.Int64
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
func (b *Background) options() []grpc.ServerOption {
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

// runModels is a model that each run reaches with the variables that its client has given.
type runModels struct {
	n    *Node
	ref  string
	mu   sync.Mutex
	open map[[sha256.Size]byte]model.Provider
}

// Complete makes one try with the variables of the run of ctx.
func (m *runModels) Complete(ctx context.Context, req *model.Request, delta func(model.Delta)) (*model.Response, error) {
	p, err := m.provider(model.RunOf(ctx))
	if err != nil {
		return nil, err
	}
	return p.Complete(ctx, req, delta)
}

// maxOpenModels bounds the providers of one model that are kept: one for each environment.
const maxOpenModels = 64

func (m *runModels) provider(run string) (model.Provider, error) {
	variables := m.n.cfg.Background.Environment(run)
	key := sha256.Sum256(fmt.Append(nil, variables)) // fmt sorts a map
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.open[key]; p != nil {
		return p, nil
	}
	p, _, err := provider.OpenFrom(m.n.cfg.Catalogue, m.ref, func(name string) string { return variables[name] }, m.n.scripts())
	if err != nil {
		text := err.Error()
		if len(variables) == 0 {
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
