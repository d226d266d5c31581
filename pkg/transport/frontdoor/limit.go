package frontdoor

import (
	"container/list"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
)

// Limits bound the connections at the same time.
type Limits struct {
	// Peer is for those of one peer.
	Peer int
	// Total is for all; 0 for no bound.
	Total int
	// Yield makes a connection without a call, as Proven records, leave for a new one: the oldest of
	// its peer, or of all. Otherwise the new one is closed.
	Yield bool
}

// BoundedListener is a listener within Limits. A peer is a user of this machine at an address of loopback,
// whose sockets the kernel names (Linux), and elsewhere an IPv4 address or the 64 bits of an IPv6
// network. Connections over loopback whose user is not known count together. The first refusal of
// a peer is logged, until it has no connection.
type BoundedListener struct {
	net.Listener
	limits Limits
	logger *slog.Logger

	mu    sync.Mutex
	peers map[origin]*peer
	// conns are the open ones by the address of their other end, and silent those without a call,
	// oldest first.
	conns  map[string]*peerConn
	silent list.List
	open   int
}

// peer counts the connections of a peer.
type peer struct {
	open    int
	silent  list.List // those without a call, oldest first
	refused bool
}

// Limit returns a listener within limits.
func Limit(listener net.Listener, limits Limits, logger *slog.Logger) *BoundedListener {
	return &BoundedListener{Listener: listener, limits: limits, logger: logger, peers: map[origin]*peer{}, conns: map[string]*peerConn{}}
}

// Accept waits for the next connection that is within the limits.
func (l *BoundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, known := originOf(conn)
		if !known {
			return conn, nil
		}
		entered, leaves := l.enter(conn, from)
		if leaves != nil {
			_ = leaves.Close()
		}
		if entered != nil {
			return entered, nil
		}
		_ = conn.Close()
	}
}

// enter counts a connection, unless there are too many. leaves is to be closed for it.
func (l *BoundedListener) enter(conn net.Conn, from origin) (entered, leaves *peerConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[from]
	if p == nil {
		p = &peer{}
		l.peers[from] = p
	}
	fullPeer, full := p.open >= l.limits.Peer, l.limits.Total > 0 && l.open >= l.limits.Total
	if fullPeer || full {
		if leaves = l.oldest(p, fullPeer); leaves == nil {
			l.refused(p, from, fullPeer)
			return nil, nil
		}
	}
	p.open++
	l.open++
	entered = &peerConn{Conn: conn, limited: l, from: from, name: conn.RemoteAddr().String()}
	l.conns[entered.name] = entered
	if l.limits.Yield {
		entered.ofAll, entered.ofPeer = l.silent.PushBack(entered), p.silent.PushBack(entered)
	}
	return entered, leaves
}

// oldest returns the oldest connection without a call, of a peer or of all; nil for none.
func (l *BoundedListener) oldest(p *peer, ofPeer bool) *peerConn {
	first := l.silent.Front()
	if ofPeer {
		first = p.silent.Front()
	}
	if first == nil {
		return nil
	}
	conn, _ := first.Value.(*peerConn)
	return conn
}

// refused logs the first refusal of a peer.
func (l *BoundedListener) refused(p *peer, from origin, fullPeer bool) {
	switch {
	case p.refused:
	case fullPeer:
		l.logger.Warn("connections of a peer are refused: it has as many as --peer-connections permits", "peer", from.String(), "connections", p.open)
	default:
		l.logger.Warn("connections are refused: there are as many as this process has room for", "peer", from.String(), "connections", l.open)
	}
	p.refused = true
	if p.open == 0 {
		delete(l.peers, from)
	}
}

// Proven records that a call was admitted on the connection from an address: it no longer leaves for
// another one.
func (l *BoundedListener) Proven(address string) {
	if !l.limits.Yield {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn := l.conns[address]; conn != nil {
		l.speaks(conn)
	}
}

// speaks takes a connection from those without a call.
func (l *BoundedListener) speaks(conn *peerConn) {
	if conn.ofAll == nil {
		return
	}
	l.silent.Remove(conn.ofAll)
	l.peers[conn.from].silent.Remove(conn.ofPeer)
	conn.ofAll, conn.ofPeer = nil, nil
}

// remove counts a connection no longer, once. l.mu is locked.
func (l *BoundedListener) remove(conn *peerConn) {
	if conn.removed {
		return
	}
	conn.removed = true
	l.speaks(conn)
	if l.conns[conn.name] == conn {
		delete(l.conns, conn.name)
	}
	l.open--
	p := l.peers[conn.from]
	if p.open--; p.open == 0 {
		delete(l.peers, conn.from)
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
	limited *BoundedListener
	from    origin
	name    string // the address of its other end
	removed bool
	// ofAll and ofPeer are its places among those without a call; nil: it has had one.
	ofAll, ofPeer *list.Element
}

// Close closes the connection, which counts no longer.
func (c *peerConn) Close() error {
	c.limited.mu.Lock()
	c.limited.remove(c)
	c.limited.mu.Unlock()
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
