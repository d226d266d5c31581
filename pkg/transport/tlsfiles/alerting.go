package tlsfiles

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// alertConn is a connection of a client. With TLS 1.3 a client learns only after its
// handshake that the server does not trust it: it may write to a connection that is
// already closed. If a write fails, alertConn reads the alert.
type alertConn struct {
	net.Conn
	syscallConn
	heard atomic.Bool // bytes of the server arrived
}

// syscallConn is the underlying socket, for timeouts of the system.
type syscallConn interface{ syscall.Conn }

func newAlerting(conn net.Conn) net.Conn {
	if s, ok := conn.(syscall.Conn); ok {
		return &alertConn{Conn: conn, syscallConn: s}
	}
	return conn
}

// alertWait bounds the read of an alert, which arrives before the connection ends.
const alertWait = 100 * time.Millisecond

func (c *alertConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

func (c *alertConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil || c.heard.Load() || c.Conn.SetReadDeadline(time.Now().Add(alertWait)) != nil {
		return n, err
	}
	var first [1]byte
	_, alert := c.Conn.Read(first[:])
	var remote *net.OpError
	if errors.As(alert, &remote) && remote.Op == "remote error" {
		err = alert
	}
	return n, err
}
