// Package egress is the proxy through which a confined command reaches named hosts. It speaks
// HTTP, with CONNECT and with absolute URLs, and SOCKS5, all at one listener in the network of
// the command, which has no other way out.
//
// A connection or request is decided by the name and the port that the client asks for. The
// name is resolved here, once, and the address that is dialled is the one that was checked: it
// has to be public, unless the operator has named the host. Addresses instead of names are
// refused. A kept-alive connection is decided again with each request. What passes through a
// tunnel is not looked at, so a host that serves several names under one certificate, or that
// passes on what it is sent, serves all of that to a command that may reach it.
//
// Refusals are recorded for the result of the call.
package egress

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// Bounds of a proxy.
const (
	maxConnections = 256
	maxHeaderBytes = 64 << 10
	// greetTimeout bounds the time until the target of a client is known.
	greetTimeout = 30 * time.Second
	// keepTimeout is how long a connection without a request is kept.
	keepTimeout = time.Minute
	// idleTimeout is how long a connection to a host may be silent in both directions.
	idleTimeout = 10 * time.Minute
	acceptPause = 50 * time.Millisecond
)

// Config configures a Proxy.
type Config struct {
	// Hosts can be reached.
	Hosts []sandbox.Host
	// Private are those of Hosts whose addresses need not be public.
	Private []sandbox.Host
	// Resolve returns the addresses of a name. Default: as the machine resolves it.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
}

// Proxy serves one command.
type Proxy struct {
	config Config
	http   *http.Server
	// upstream sends requests with absolute URLs.
	upstream *http.Transport
	// own returns the addresses of this machine.
	own func() ([]net.Addr, error)
	// toHTTP passes connections to the HTTP server.
	toHTTP chan net.Conn

	// requests counts the requests that are served.
	requests sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// connections of clients that are open.
	connections map[*connection]bool
	refused     []*Refusal
}

// New returns a proxy that serves nothing yet.
func New(config Config) *Proxy {
	p := &Proxy{config: config, own: net.InterfaceAddrs, toHTTP: make(chan net.Conn), connections: map[*connection]bool{}}
	p.http, p.upstream = p.newHTTP(), p.newTransport()
	return p
}

// Serve serves the connections to a listener until that is closed, once. It returns when all
// connections are closed.
func (p *Proxy) Serve(l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	p.http.BaseContext = func(net.Listener) context.Context { return ctx }
	var running sync.WaitGroup
	running.Go(func() { _ = p.http.Serve(&handover{from: p.toHTTP, done: ctx.Done(), address: l.Addr()}) })
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil { // this process has no descriptors left
			time.Sleep(acceptPause)
			continue
		}
		if c := p.add(conn); c != nil {
			running.Go(func() { p.greet(ctx, c) })
		}
	}
	cancel()
	p.closeAll()
	_ = p.http.Close()
	running.Wait()
	p.requests.Wait()
	p.upstream.CloseIdleConnections()
}

// greet finds out what a client speaks by its first byte.
func (p *Proxy) greet(ctx context.Context, c *connection) {
	_ = c.SetDeadline(time.Now().Add(greetTimeout))
	first, err := c.buffer.Peek(1)
	switch {
	case err != nil:
		_ = c.Close()
	case first[0] == socksVersion:
		p.serveSOCKS(ctx, c)
	default:
		_ = c.SetDeadline(time.Time{})
		select {
		case p.toHTTP <- c:
		case <-ctx.Done():
			_ = c.Close()
		}
	}
}

// connection is one of a client.
type connection struct {
	net.Conn
	buffer *bufio.Reader
	proxy  *Proxy
}

// add keeps a new connection until it is closed. It closes it and returns nil if there are
// too many.
func (p *Proxy) add(conn net.Conn) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.connections) >= maxConnections {
		_ = conn.Close()
		return nil
	}
	c := &connection{Conn: conn, buffer: bufio.NewReader(conn), proxy: p}
	p.connections[c] = true
	return c
}

// closeAll closes the connections of all clients, and lets no request begin.
func (p *Proxy) closeAll() {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.connections))
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// startRequest counts a request. It returns false if the proxy is closing.
func (p *Proxy) startRequest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.requests.Add(1)
	return true
}

// Read reads the buffered bytes first.
func (c *connection) Read(data []byte) (int, error) { return c.buffer.Read(data) }

// CloseWrite ends the direction to the client.
func (c *connection) CloseWrite() error { return closeWrite(c.Conn) }

// Close closes the connection.
func (c *connection) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.connections, c)
	c.proxy.mu.Unlock()
	return c.Conn.Close()
}

// handover is the listener of the HTTP server.
type handover struct {
	from    <-chan net.Conn
	done    <-chan struct{}
	address net.Addr
}

// Accept returns the next connection that speaks HTTP.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.from:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close does nothing: the proxy closes its connections.
func (h *handover) Close() error { return nil }

// Addr returns the address of the proxy's listener.
func (h *handover) Addr() net.Addr { return h.address }

// Refused returns the refusals, in the order of the names.
func (p *Proxy) Refused() Refusals {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(slices.Values(p.refused), (*Refusal).compare)
}
