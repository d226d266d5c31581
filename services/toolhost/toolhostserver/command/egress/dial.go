package egress

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
)

// connect connects to a host that a command may reach. The error is a *Refusal if it may not.
// An address is resolved once: the checked address is dialled.
func (p *Proxy) connect(ctx context.Context, name string, port uint16) (*hostConnection, error) {
	normal, err := p.decide(name, port)
	if err != nil {
		return nil, err
	}
	conn, err := p.dialer().Dial(ctx, normal, port)
	if errors.Is(err, dial.ErrNotPublic) {
		return nil, p.refuse(normal, port, NotPublic)
	}
	if err != nil {
		return nil, err
	}
	return &hostConnection{conn}, nil
}

// dialer connects to hosts that decide has accepted, at any port.
func (p *Proxy) dialer() *dial.Dialer {
	return &dial.Dialer{Allowed: p.config.Private, AnyPort: true, Resolve: p.config.Resolve, Own: p.own}
}

// hostConnection is a connection to a host that ends after idleTimeout without a byte.
type hostConnection struct{ net.Conn }

// Read reads, and extends the time.
func (w *hostConnection) Read(data []byte) (int, error) {
	_ = w.SetDeadline(time.Now().Add(idleTimeout))
	return w.Conn.Read(data)
}

// Write writes, and extends the time.
func (w *hostConnection) Write(data []byte) (int, error) {
	_ = w.SetDeadline(time.Now().Add(idleTimeout))
	return w.Conn.Write(data)
}

// CloseWrite ends the direction to the host.
func (w *hostConnection) CloseWrite() error { return closeWrite(w.Conn) }
