// Package dial connects to hosts that a command, a tool or a server names, and to no address
// that is not theirs to reach.
//
// A name is resolved once and dialled as resolved, so that another answer to a second look-up
// changes nothing. Addresses that are not public (pkg/sandbox) and those of this machine are
// refused unless the host is allowed by name and port.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// Bounds of a connection.
const (
	resolveTimeout = 10 * time.Second
	dialTimeout    = 15 * time.Second
	maxAddresses   = 8
)

var (
	// ErrNotPublic is the error of a host that has no public address.
	ErrNotPublic = errors.New("it has no public address")
	// ErrPort is the error of a port other than 80 and 443.
	ErrPort = errors.New("only the ports 80 and 443 are allowed")
)

// Dialer connects to hosts. It is safe for concurrent use; its fields must not be changed
// after the first use.
type Dialer struct {
	// Allowed are the hosts that may have any address, each at its port.
	Allowed []sandbox.Host
	// AnyPort permits all ports of public addresses, not only 80 and 443.
	AnyPort bool
	// Resolve returns the addresses of a name; nil for those of DNS and the hosts file.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Own returns the addresses of this machine; nil for those of its interfaces.
	Own func() ([]net.Addr, error)
}

// resolver resolves without the C library, which takes more for addresses than names.
var resolver = &net.Resolver{PreferGo: true}

// Addresses returns the addresses of a host that may be dialled, in the order of the resolver.
// The host is a name or an address. The error is ErrNotPublic or ErrPort if it is refused.
func (d *Dialer) Addresses(ctx context.Context, host string, port uint16) ([]netip.Addr, error) {
	name, named := sandbox.NormalName(host)
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		name = a.Unmap().String() // lists of hosts name addresses only for one use
	}
	allowed := sandbox.Matches(d.Allowed, name, port)
	if !allowed && !d.AnyPort && port != 80 && port != 443 {
		return nil, ErrPort
	}
	all, err := d.lookUp(ctx, host, name, named)
	if err != nil {
		return nil, err
	}
	if allowed {
		return all, nil
	}
	read := d.Own
	if read == nil {
		read = net.InterfaceAddrs
	}
	own, err := read()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	public := slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return !sandbox.Public(a) || isOwn(own, a) })
	if len(public) == 0 {
		return nil, ErrNotPublic
	}
	return public, nil
}

func (d *Dialer) lookUp(ctx context.Context, host, name string, named bool) ([]netip.Addr, error) {
	if !named {
		a, err := netip.ParseAddr(host)
		if err != nil { // such as 127.1 or 0x7f000001, which some resolvers take for addresses
			return nil, fmt.Errorf("%q is neither a name nor an address", host)
		}
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	resolve := d.Resolve
	if resolve == nil {
		resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return resolver.LookupNetIP(ctx, "ip", name)
		}
	}
	all, err := resolve(ctx, name)
	if err != nil || len(all) == 0 { // the cause names servers that are not for commands
		return nil, fmt.Errorf("the address of %s cannot be found", name)
	}
	return all, nil
}

// isOwn reports whether an address is one of this machine.
func isOwn(own []net.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(own, func(o net.Addr) bool {
		prefix, ok := o.(*net.IPNet)
		return ok && prefix.IP.Equal(a.Unmap().AsSlice())
	})
}

// Dial connects to a host. Addresses has its errors; others are of the connection.
func (d *Dialer) Dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	addresses, err := d.Addresses(ctx, host, port)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, a := range addresses[:min(len(addresses), maxAddresses)] {
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String())
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("%s cannot be reached: %w", host, failed)
}

// DialContext is Dial for an http.Transport: the target is HOST:PORT.
func (d *Dialer) DialContext(ctx context.Context, network, target string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", text, err)
	}
	conn, err := d.Dial(ctx, host, uint16(port))
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return conn, nil
}
