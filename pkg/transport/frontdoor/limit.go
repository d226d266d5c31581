package frontdoor

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
)

// Limit returns a listener that closes each connection of a peer beyond most at the same
// time. A peer is a user of this machine at an address of loopback, whose sockets the kernel
// names (Linux), and elsewhere an IPv4 address or the 64 bits of an IPv6 network. Connections
// over loopback whose user is not known count together. The first refusal of a peer is logged,
// until it has no connection.
func Limit(listener net.Listener, most int, logger *slog.Logger) net.Listener {
	return &limiter{Listener: listener, most: most, logger: logger, peers: map[origin]*peer{}}
}

type limiter struct {
	net.Listener
	most   int
	logger *slog.Logger

	mu    sync.Mutex
	peers map[origin]*peer
}

// peer counts the connections of a peer.
type peer struct {
	open    int
	refused bool
}

// Accept waits for the next connection that is within the limit.
func (l *limiter) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, known := originOf(conn)
		switch {
		case !known:
			return conn, nil
		case l.enter(from):
			return &peerConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		_ = conn.Close()
	}
}

// enter counts a connection, unless the peer has too many.
func (l *limiter) enter(from origin) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[from]
	if p == nil {
		p = &peer{}
		l.peers[from] = p
	}
	if p.open < l.most {
		p.open++
		return true
	}
	if !p.refused {
		p.refused = true
		l.logger.Warn("connections of a peer are refused: it has as many as --peer-connections permits", "peer", from.String(), "connections", p.open)
	}
	return false
}

func (l *limiter) leave(from origin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.peers[from]; p.open > 1 {
		p.open--
	} else {
		delete(l.peers, from)
	}
}

// origin is what counts as a peer.
type origin struct {
	network netip.Prefix
	// user is the user id and 1; 0: not known.
	user uint64
}

// String returns the origin for logs.
func (o origin) String() string {
	if o.user == 0 {
		return o.network.String()
	}
	return fmt.Sprintf("user %d at loopback", o.user-1)
}

// originOf returns whose connection it is. A user counts once, at whichever address of loopback.
func originOf(conn net.Conn) (origin, bool) {
	network, known := peerOf(conn.RemoteAddr())
	remote, ok := addressOf(conn.RemoteAddr())
	if !ok || !remote.Addr().IsLoopback() {
		return origin{network: network}, known
	}
	if local, ok := addressOf(conn.LocalAddr()); ok {
		if uid, err := ownerOf(remote, local); err == nil {
			return origin{user: uint64(uid) + 1}, true
		}
	}
	return origin{network: network}, known
}

func addressOf(address net.Addr) (netip.AddrPort, bool) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}

// peerOf returns the network that counts as a peer.
func peerOf(address net.Addr) (netip.Prefix, bool) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}, false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	return prefix, err == nil
}

// peerConn is a connection of a peer.
type peerConn struct {
	net.Conn
	leave func()
}

// Close closes the connection, which counts no longer.
func (c *peerConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite closes the writing side; the peer can still send.
func (c *peerConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return c.Close()
	}
	return half.CloseWrite()
}
