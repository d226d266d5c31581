package egress

import (
	"io"
	"net"
	"sync"
)

// halves is a connection of which each direction ends for itself.
type halves interface {
	io.ReadWriteCloser
	CloseWrite() error
}

var (
	_ halves = (*connection)(nil)
	_ halves = (*hostConnection)(nil)
)

// closeWrite ends a direction of a connection.
func closeWrite(c net.Conn) error {
	if half, ok := c.(halves); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// tunnel passes bytes in both directions until both have ended, or one has failed. Those of
// the client are read from early. Both connections are closed then.
func tunnel(client halves, early io.Reader, host halves) {
	var both sync.WaitGroup
	pass := func(to halves, from io.Reader) {
		_, err := io.Copy(to, from)
		if err == nil {
			err = to.CloseWrite()
		}
		if err != nil {
			_, _ = client.Close(), host.Close()
		}
	}
	both.Go(func() { pass(host, early) })
	both.Go(func() { pass(client, host) })
	both.Wait()
	_, _ = client.Close(), host.Close()
}
