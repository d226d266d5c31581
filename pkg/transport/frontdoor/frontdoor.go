// Package frontdoor lets gRPC and HTTP/1.1 come in on one port.
//
// A connection that begins with the preface of HTTP/2 is gRPC, any other is HTTP.
// With TLS a client that offers http/1.1 (by ALPN) gets HTTP and one that offers
// only h2 gets gRPC, as every gRPC client does; one that offers nothing is told by
// its first bytes. Each connection is looked at on its own, so one that says nothing
// holds nobody up.
package frontdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// patience is how long a client may take for its handshake and first bytes.
const patience = 10 * time.Second

// Door hands on the connections of a listener.
type Door struct {
	listener net.Listener
	tls      *tls.Config // nil means none
	logger   *slog.Logger
	grpc     *side
	http     *side

	ctx     context.Context //nolint:containedctx // ends what is being looked at
	stop    context.CancelFunc
	running sync.WaitGroup
	once    sync.Once
}

// Protocols are those that a TLS server has to offer behind a Door, in this order.
var Protocols = []string{"http/1.1", "h2"}

// New makes a door. cfg is nil without TLS and offers Protocols with it. Open it,
// and Close it in the end.
func New(listener net.Listener, cfg *tls.Config, logger *slog.Logger) *Door {
	ctx, stop := context.WithCancel(context.Background())
	return &Door{
		listener: listener, tls: cfg, logger: logger, ctx: ctx, stop: stop,
		grpc: newSide(listener.Addr()), http: newSide(listener.Addr()),
	}
}

// GRPC has the connections that speak gRPC.
func (d *Door) GRPC() net.Listener { return d.grpc }

// HTTP has those that speak HTTP/1.1.
func (d *Door) HTTP() net.Listener { return d.http }

// Open begins to accept.
func (d *Door) Open() {
	d.running.Go(func() {
		for {
			conn, err := d.listener.Accept()
			switch {
			case err == nil:
				d.running.Go(func() { d.admit(conn) })
			case d.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
				return
			default: // out of file descriptors, say
				d.logger.Warn("a connection could not be accepted", "error", err)
				select {
				case <-d.ctx.Done():
				case <-time.After(acceptPause):
				}
			}
		}
	})
}

// acceptPause keeps a listener that fails from taking all of the processor.
const acceptPause = 50 * time.Millisecond

// Close ends accepting. Connections that were handed on stay.
func (d *Door) Close() {
	d.once.Do(func() {
		d.stop()
		_ = d.listener.Close()
		d.grpc.end()
		d.http.end()
	})
	d.running.Wait()
}

// admit finds out what a connection speaks and hands it on.
func (d *Door) admit(raw net.Conn) {
	undo := context.AfterFunc(d.ctx, func() { _ = raw.Close() })
	to, conn := d.tell(raw)
	if !undo() || to == nil { // closed meanwhile, or not wanted
		_ = raw.Close()
		return
	}
	if raw.SetDeadline(time.Time{}) != nil || !to.give(conn) {
		_ = raw.Close()
	}
}

func (d *Door) tell(raw net.Conn) (*side, net.Conn) {
	if raw.SetDeadline(time.Now().Add(patience)) != nil {
		return nil, nil
	}
	if d.tls == nil {
		return d.byPreface(raw)
	}
	first := newPeeked(raw)
	switch begins, err := first.peek(1); {
	case err != nil:
		return nil, nil
	case begins[0] != recordHandshake:
		refusePlain(raw)
		return nil, nil
	}
	conn := tls.Server(first, d.tls)
	if err := conn.HandshakeContext(d.ctx); err != nil {
		d.logger.Debug("a TLS handshake failed", "remote", raw.RemoteAddr().String(), "error", err)
		return nil, nil
	}
	switch conn.ConnectionState().NegotiatedProtocol {
	case "h2":
		return d.grpc, conn
	case "http/1.1":
		return d.http, conn
	}
	return d.byPreface(conn)
}

// byPreface tells by the first bytes. No method of HTTP/1.1 begins as the preface.
func (d *Door) byPreface(conn net.Conn) (*side, net.Conn) {
	const preface = "PRI "
	p := newPeeked(conn)
	for n := 1; n <= len(preface); n++ {
		begins, err := p.peek(n)
		if err != nil {
			return nil, nil
		}
		if string(begins) != preface[:n] {
			return d.http, p.as(conn)
		}
	}
	return d.grpc, p.as(conn)
}

// recordHandshake is the first byte of a client that speaks TLS.
const recordHandshake = 0x16

// notTLS answers a client that does not speak TLS; HTTP clients show it.
var notTLS = []byte("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
	`{"error":{"code":"INVALID_ARGUMENT","reason":"TLS_REQUIRED","message":"this port speaks TLS: use https://, or --tls with the harness command"}}` + "\n")

// Bounds of what is still taken from a client that was refused.
const (
	refusedTime  = time.Second
	refusedBytes = 64 << 10
)

// refusePlain answers a client that does not speak TLS. What it sends is taken in
// before the end: unread bytes would make the system throw the answer away.
func refusePlain(raw net.Conn) {
	_ = raw.SetDeadline(time.Now().Add(refusedTime))
	_, _ = raw.Write(notTLS)
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, raw, refusedBytes)
}

// side is one half of the connections, as a listener.
type side struct {
	address net.Addr
	conns   chan net.Conn
	ended   chan struct{}
	once    sync.Once
}

func newSide(address net.Addr) *side {
	return &side{address: address, conns: make(chan net.Conn), ended: make(chan struct{})}
}

func (s *side) give(conn net.Conn) bool {
	select {
	case s.conns <- conn:
		return true
	case <-s.ended:
		return false
	}
}

func (s *side) end() { s.once.Do(func() { close(s.ended) }) }

// Accept waits for the next connection of this side.
func (s *side) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// Close ends this side only.
func (s *side) Close() error {
	s.end()
	return nil
}

// Addr is that of the port.
func (s *side) Addr() net.Addr { return s.address }
