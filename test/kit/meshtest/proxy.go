package meshtest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy forwards the connection between a process and the bus and can interrupt it:
// bytes stop in both directions and connections stay open, as when a cable is pulled.
type Proxy struct {
	tb       testing.TB
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   chan struct{} // closed when bytes may continue; nil while they do
	conns []net.Conn
}

// StartProxy starts a proxy in front of a server of the bus.
func StartProxy(tb testing.TB, bus *NATS) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{tb: tb, listener: l, target: bus.servers[0].client}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.carry(c) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		p.Restore()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

// URL returns the URL of the bus through the proxy.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Cut stops all bytes.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut == nil {
		p.cut = make(chan struct{})
	}
}

// Restore lets all bytes continue.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		close(p.cut)
		p.cut = nil
	}
}

// open waits while the proxy is cut.
func (p *Proxy) open() {
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	if cut != nil {
		<-cut
	}
}

func (p *Proxy) carry(client net.Conn) {
	p.open()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(writer{p, pair[1]}, pair[0])
			_ = pair[0].Close()
			_ = pair[1].Close()
		})
	}
	both.Wait()
}

// writer writes while the proxy is open.
type writer struct {
	p  *Proxy
	to net.Conn
}

func (w writer) Write(b []byte) (int, error) {
	w.p.open()
	return w.to.Write(b)
}

// Via makes a process connect to the bus at another URL.
func Via(url string) Option {
	return func(l *launch) {
		for i, arg := range l.args {
			if arg == "--nats" {
				l.args[i+1] = url
			}
		}
	}
}
