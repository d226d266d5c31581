package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// Bounds of a connection to a host that is not there yet.
const (
	resolveTimeout = 10 * time.Second
	dialTimeout    = 15 * time.Second
	maxAddresses   = 8
)

// resolver resolves without the C library, which takes more for addresses than names.
var resolver = &net.Resolver{PreferGo: true}

func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	return resolver.LookupNetIP(ctx, "ip", name)
}

// connect connects to a host that a command may reach. The error is a *Refusal if it may not.
// An address is resolved once: what was checked is dialled.
func (p *Proxy) connect(ctx context.Context, name string, port uint16) (*hostConnection, error) {
	normal, err := p.decide(name, port)
	if err != nil {
		return nil, err
	}
	addresses, err := p.addresses(ctx, normal, port)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, a := range addresses[:min(len(addresses), maxAddresses)] {
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String())
		if err == nil {
			return &hostConnection{conn}, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("%s cannot be reached: %w", normal, failed)
}

// addresses returns the addresses of a host that may be dialled.
func (p *Proxy) addresses(ctx context.Context, name string, port uint16) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	all, err := p.config.Resolve(ctx, name)
	if err != nil || len(all) == 0 { // the cause names servers that are not for commands
		return nil, fmt.Errorf("the address of %s cannot be found", name)
	}
	if sandbox.Matches(p.config.Private, name, port) {
		return all, nil
	}
	own, err := p.own()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	public := slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return !sandbox.Public(a) || isOwn(own, a) })
	if len(public) == 0 {
		return nil, p.refuse(name, port, NotPublic)
	}
	return public, nil
}

// isOwn reports whether an address is one of this machine: its services are not for commands.
func isOwn(own []net.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(own, func(o net.Addr) bool {
		prefix, ok := o.(*net.IPNet)
		return ok && prefix.IP.Equal(a.Unmap().AsSlice())
	})
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
