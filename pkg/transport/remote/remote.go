// Package remote keeps connections to the gRPC services that users run for their runs:
// hooks, checks and context providers.
//
// A connection is opened on first use, kept by its target, and shared. It uses no proxy.
// It is plaintext if the target is on this machine, see Local, and TLS otherwise. A call to
// a target whose server is away fails immediately; the connection is tried again within two
// seconds.
package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
)

const (
	// MaxConnections is how many connections a Pool keeps. A further one replaces the
	// connection that has been idle longest.
	MaxConnections = 64
	// maxMessage bounds a response, in bytes.
	maxMessage = 4 << 20
)

// ErrClosed is returned by a Pool that is closed.
var ErrClosed = errors.New("the connection pool is closed")

// ErrBusy is returned if all connections of a Pool are in use.
var ErrBusy = errors.New("too many connections are in use")

// Pool is a set of connections. The zero Pool is ready to use. It is safe for concurrent
// use.
type Pool struct {
	// Options are additional options of each connection, and TLS the credentials of those to
	// other machines; nil verifies servers by the CAs of the system. They must not change
	// after the first use.
	Options []grpc.DialOption
	TLS     credentials.TransportCredentials

	mu     sync.Mutex
	conns  map[string]*conn
	uses   uint64
	closed bool
}

// conn is a connection; the pool's lock guards its counts.
type conn struct {
	*grpc.ClientConn
	busy int
	used uint64
}

// Dial returns a client of a target that is valid until the Pool is closed. It sends
// nothing.
func (p *Pool) Dial(target string) (grpc.ClientConnInterface, error) {
	if err := Check(target); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	return way{p, target}, nil
}

// Open returns a connection to a target that is its caller's alone: the caller closes it, and
// learns from its state when the server is gone. It sends nothing.
func (p *Pool) Open(target string) (*grpc.ClientConn, error) {
	if err := Check(target); err != nil {
		return nil, err
	}
	return open(target, p.credentials(target), append([]grpc.DialOption{grpc.WithIdleTimeout(0)}, p.Options...))
}

// Reach tries to reach the server of a target until ctx ends. The error is one line.
func (p *Pool) Reach(ctx context.Context, target string) error {
	to, err := p.Dial(target)
	if err != nil {
		return err
	}
	// Any response will do: a server need not have this service.
	_, err = grpc_health_v1.NewHealthClient(to).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	switch {
	case errors.Is(err, ErrBusy), errors.Is(err, ErrClosed):
		return fmt.Errorf("%s: %w", target, err)
	case ctx.Err() != nil, status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.Canceled:
		return fmt.Errorf("%s does not answer", target)
	case status.Code(err) == codes.Unavailable:
		return fmt.Errorf("%s cannot be reached: %s", target, Reason(err))
	}
	return nil
}

// maxReason bounds the text of a failed call, in bytes: the server has written it.
const maxReason = 1000

// Reason returns the text of a failed call on one line, without gRPC's prefixes.
func Reason(err error) string {
	text := content.Line(status.Convert(err).Message(), maxReason)
	if _, inner, ok := strings.Cut(text, `desc = "transport: `); ok {
		text = strings.TrimSuffix(inner, `"`)
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "Error while dialing: "), "authentication handshake failed: ")
}

// DeadlinePassed reports whether a server ended a call because the deadline of ctx has
// passed. The server may end it up to 100 ms before ctx itself ends.
func DeadlinePassed(ctx context.Context, err error) bool {
	deadline, ok := ctx.Deadline()
	code := status.Code(err)
	return ok && (code == codes.DeadlineExceeded || code == codes.Canceled) && time.Until(deadline) < 100*time.Millisecond
}

// Close closes all connections; calls under way fail.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for target, c := range p.conns {
		delete(p.conns, target)
		_ = c.Close()
	}
}

// take returns the connection of a target, counted as in use.
func (p *Pool) take(target string) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	c := p.conns[target]
	if c == nil {
		if err := p.makeRoom(); err != nil {
			return nil, err
		}
		made, err := open(target, p.credentials(target), p.Options)
		if err != nil {
			return nil, err
		}
		c = &conn{ClientConn: made}
		if p.conns == nil {
			p.conns = map[string]*conn{}
		}
		p.conns[target] = c
	}
	p.uses++
	c.busy++
	c.used = p.uses
	return c, nil
}

// makeRoom closes the connection that has been idle longest if the pool is full.
func (p *Pool) makeRoom() error {
	if len(p.conns) < MaxConnections {
		return nil
	}
	oldest := ""
	for target, c := range p.conns {
		if c.busy == 0 && (oldest == "" || c.used < p.conns[oldest].used) {
			oldest = target
		}
	}
	if oldest == "" {
		return ErrBusy
	}
	_ = p.conns[oldest].Close()
	delete(p.conns, oldest)
	return nil
}

func (p *Pool) release(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.busy--
}

// credentials returns those of a connection to a target.
func (p *Pool) credentials(target string) credentials.TransportCredentials {
	switch {
	case Local(target):
		return insecure.NewCredentials()
	case p.TLS != nil:
		return p.TLS
	}
	return bySystem()
}

// bySystem returns credentials that verify servers by the CAs of the system.
var bySystem = sync.OnceValue(func() credentials.TransportCredentials {
	id, err := tlsfiles.Load(tlsfiles.Files{Services: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err) // it reads no file
	}
	return id.ClientCredentials()
})

func open(target string, secure credentials.TransportCredentials, more []grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("dns:///"+target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("harnessmesh"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}, more...)...)
}

// way is a client of a target over the connection that the pool has at each call.
type way struct {
	pool   *Pool
	target string
}

// Invoke makes a unary call.
func (w way) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	c, err := w.pool.take(w.target)
	if err != nil {
		return err
	}
	defer w.pool.release(c)
	return c.Invoke(ctx, method, args, reply, options...)
}

// NewStream opens a stream. Its connection counts as in use until ctx ends.
func (w way) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	c, err := w.pool.take(w.target)
	if err != nil {
		return nil, err
	}
	stream, err := c.NewStream(ctx, desc, method, options...)
	if err != nil {
		w.pool.release(c)
		return nil, err
	}
	context.AfterFunc(ctx, func() { w.pool.release(c) })
	return stream, nil
}
