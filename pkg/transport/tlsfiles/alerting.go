package tlsfiles

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// alerting is a connection of a client, which learns only after its handshake that
// the server does not trust it (TLS 1.3): it may write to a connection that is
// closed by then, and find out nothing. It then looks for the alert.
type alerting struct {
	net.Conn
	syscallConn
	heard atomic.Bool // something of the server came
}

// syscallConn is the socket beneath, for time-outs of the system.
type syscallConn interface{ syscall.Conn }

func newAlerting(conn net.Conn) net.Conn {
	if s, ok := conn.(syscall.Conn); ok {
		return &alerting{Conn: conn, syscallConn: s}
	}
	return conn
}

// alertWait bounds the look for an alert, which is there before the connection ends.
const alertWait = 100 * time.Millisecond

func (c *alerting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

func (c *alerting) Write(b []byte) (int, error) {
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
