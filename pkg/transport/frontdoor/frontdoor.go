// Package frontdoor serves gRPC and HTTP/1.1 on one port.
//
// A connection that begins with the HTTP/2 preface is gRPC, any other is HTTP. With TLS,
// a client that lists http/1.1 by ALPN gets HTTP, and one that lists only h2 gets
// gRPC, as every gRPC client does; without ALPN the first bytes decide. Each connection
// is examined in its own goroutine, so a silent one delays no other.
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

const (
	// firstBytes bounds the wait for the first byte of a client: it has the connection to send a
	// request.
	firstBytes = 2 * time.Second
	// patience bounds the handshake, and the bytes that name the protocol.
	patience = 10 * time.Second
)

// Door distributes the connections of a listener.
type Door struct {
	listener net.Listener
	tls      *tls.Config // nil means none
	logger   *slog.Logger
	grpc     *side
	http     *side
	first    time.Duration // firstBytes, or less in tests

	ctx     context.Context //nolint:containedctx // ends the examination of new connections
	stop    context.CancelFunc
	running sync.WaitGroup
	once    sync.Once
}

// Protocols are the ALPN protocols of a TLS server that uses a Door, in order of
// preference.
var Protocols = []string{"http/1.1", "h2"}

// New returns a Door. cfg is nil without TLS; with TLS it lists Protocols. Call Open to
// accept connections, and Close at the end.
func New(listener net.Listener, cfg *tls.Config, logger *slog.Logger) *Door {
	ctx, stop := context.WithCancel(context.Background())
	return &Door{
		listener: listener, tls: cfg, logger: logger, ctx: ctx, stop: stop,
		grpc: newSide(listener.Addr()), http: newSide(listener.Addr()), first: firstBytes,
	}
}

// GRPC returns a listener of the gRPC connections.
func (d *Door) GRPC() net.Listener { return d.grpc }

// HTTP returns a listener of the HTTP/1.1 connections.
func (d *Door) HTTP() net.Listener { return d.http }

// Open starts to accept connections.
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

// acceptPause keeps a failing listener from using a whole processor.
const acceptPause = 50 * time.Millisecond

// Close stops accepting. Connections that were already distributed stay open.
func (d *Door) Close() {
	d.once.Do(func() {
		d.stop()
		_ = d.listener.Close()
		d.grpc.end()
		d.http.end()
	})
	d.running.Wait()
}

// admit finds out the protocol of a connection and passes it to its side.
func (d *Door) admit(raw net.Conn) {
	undo := context.AfterFunc(d.ctx, func() { _ = raw.Close() })
	to, conn := d.detect(raw)
	if !undo() || to == nil { // closed meanwhile, or not wanted
		_ = raw.Close()
		return
	}
	if raw.SetDeadline(time.Time{}) != nil || !to.give(conn) {
		_ = raw.Close()
	}
}

func (d *Door) detect(raw net.Conn) (*side, net.Conn) {
	if raw.SetDeadline(time.Now().Add(d.first)) != nil {
		return nil, nil
	}
	first := newPeeked(raw)
	begins, err := first.peek(1)
	switch {
	case err != nil || raw.SetDeadline(time.Now().Add(patience)) != nil:
		return nil, nil
	case d.tls == nil:
		return d.byPreface(first, raw)
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
	return d.byPreface(newPeeked(conn), conn)
}

// byPreface decides by the first bytes of p, which reads from conn. No HTTP/1.1 method begins like
// the preface.
func (d *Door) byPreface(p *peekConn, conn net.Conn) (*side, net.Conn) {
	const preface = "PRI "
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

// recordHandshake is the first byte that a TLS client sends.
const recordHandshake = 0x16

// notTLS is the answer to a client that does not speak TLS; HTTP clients show it.
var notTLS = []byte("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
	`{"error":{"code":"INVALID_ARGUMENT","reason":"TLS_REQUIRED","message":"this port speaks TLS: use https://, or --tls with the harness command"}}` + "\n")

// Limits on what is read from a refused client.
const (
	refusedTime  = time.Second
	refusedBytes = 64 << 10
)

// refusePlain answers a client that does not speak TLS. It reads the client's bytes
// first, because unread bytes would make the system discard the answer.
func refusePlain(raw net.Conn) {
	_ = raw.SetDeadline(time.Now().Add(refusedTime))
	_, _ = raw.Write(notTLS)
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, raw, refusedBytes)
}

// side is the listener of one protocol.
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

// Close closes this side only.
func (s *side) Close() error {
	s.end()
	return nil
}

// Addr returns the address of the port.
func (s *side) Addr() net.Addr { return s.address }
