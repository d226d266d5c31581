// Package nettest makes addresses that do not answer, as those of dead and of hung
// machines do not. They are on loopback and need no privileges.
package nettest

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Hole is an address that drops the packets of new connections, as a router does for a
// machine that is gone: a dial waits until its own bound.
type Hole struct {
	listener *net.TCPListener
	fill     []net.Conn

	mu      sync.Mutex
	conns   []net.Conn
	running sync.WaitGroup
}

// full is how long a connection is tried to find out whether the listener drops it.
const full = 300 * time.Millisecond

// NewHole returns an address that drops the packets of new connections until Forward is
// called or the test ends. It is a listener that accepts nothing and whose queue is full.
func NewHole(tb testing.TB) *Hole {
	tb.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h := &Hole{listener: l.(*net.TCPListener)}
	tb.Cleanup(h.close)
	raw, err := h.listener.SyscallConn()
	if err != nil {
		tb.Fatal(err)
	}
	// Listening again shortens the queue.
	if cerr := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); cerr != nil || err != nil {
		tb.Fatal(errors.Join(cerr, err))
	}
	for {
		conn, err := net.DialTimeout("tcp4", h.Addr(), full)
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			return h
		}
		if err != nil {
			tb.Fatal(err)
		}
		h.fill = append(h.fill, conn)
	}
}

// Addr returns HOST:PORT.
func (h *Hole) Addr() string { return h.listener.Addr().String() }

// Forward makes the address that of another server from now on.
func (h *Hole) Forward(target string) {
	h.drain()
	h.running.Go(func() {
		for {
			client, err := h.listener.Accept()
			if err != nil {
				return // the test has ended
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			h.mu.Lock()
			h.conns = append(h.conns, client, server)
			h.mu.Unlock()
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				h.running.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // ends with either connection
					_ = pair[0].Close()
					_ = pair[1].Close()
				})
			}
		}
	})
}

func (h *Hole) drain() {
	for _, c := range h.fill {
		_ = c.Close()
	}
	h.fill = nil
}

func (h *Hole) close() {
	_ = h.listener.Close()
	h.drain()
	h.mu.Lock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.running.Wait()
}

// Silent returns an address whose server accepts connections and sends nothing, until
// the test ends.
func Silent(tb testing.TB) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		var conns []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break // the test has ended
			}
			conns = append(conns, c)
		}
		for _, c := range conns {
			_ = c.Close()
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
	})
	return l.Addr().String()
}
