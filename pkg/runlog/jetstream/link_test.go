package jetstream

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// link forwards the connections of one server to another one.
type link struct {
	listener net.Listener
	to       *node
	// there and back delay the replication traffic of streams, to the server that is
	// dialed and from it. It uses a separate connection, that of the system account.
	there, back gate
	running     sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

func newLink(t testing.TB, to *node) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, conns: map[net.Conn]bool{}}
	l.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.running.Go(func() { l.pass(conn) })
		}
	})
	return l
}

// pass forwards one connection until either side closes it.
func (l *link) pass(from net.Conn) {
	if !l.add(from) {
		return
	}
	defer l.remove(from)
	s := l.to.running()
	if s == nil || s.ClusterAddr() == nil {
		return
	}
	to, err := net.Dial("tcp", s.ClusterAddr().String())
	if err != nil || !l.add(to) {
		return
	}
	defer l.remove(to)
	var both sync.WaitGroup
	var system atomic.Bool
	both.Go(func() { l.there.carry(to, from, &system) })
	both.Go(func() { l.back.carry(from, to, &system) })
	both.Wait()
}

func (l *link) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

func (l *link) remove(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	_ = c.Close()
}

// cut closes all connections and refuses new ones until restore.
func (l *link) cut() (restore func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for c := range l.conns {
		_ = c.Close()
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.down = false
	}
}

func (l *link) close() {
	_ = l.listener.Close()
	l.cut()
	l.there.release()
	l.back.release()
	l.running.Wait()
}

// gate delays what flows in one direction while it is held.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // nil when not held
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = make(chan struct{})
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		close(g.open)
		g.open = nil
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
}

// Each server's greeting names the account that a connection is for.
const (
	greeting      = 10 // reads that certainly contain a greeting
	systemAccount = `"route_account":"SYS"`
)

// carry copies from src to dst until one of them is closed, and closes both. It delays
// the connection of the system account while the gate is held.
func (g *gate) carry(dst io.WriteCloser, src io.ReadCloser, system *atomic.Bool) {
	defer func() {
		_ = dst.Close()
		_ = src.Close()
	}()
	buf := make([]byte, 64<<10)
	for reads := 0; ; reads++ {
		n, err := src.Read(buf)
		if reads < greeting && bytes.Contains(buf[:n], []byte(systemAccount)) {
			system.Store(true)
		}
		if system.Load() {
			g.pass()
		}
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
