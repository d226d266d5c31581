package frontdoor

import (
	"bufio"
	"crypto/tls"
	"net"
)

// peekConn is a connection whose first bytes were read to find its protocol.
type peekConn struct {
	net.Conn
	reader *bufio.Reader
}

// peekBuffer is the smallest buffer of a bufio.Reader.
const peekBuffer = 16

func newPeeked(conn net.Conn) *peekConn {
	return &peekConn{Conn: conn, reader: bufio.NewReaderSize(conn, peekBuffer)}
}

func (p *peekConn) peek(n int) ([]byte, error) { return p.reader.Peek(n) }

// Read returns the buffered bytes first. After that it costs nothing: larger reads
// bypass an empty buffer.
func (p *peekConn) Read(b []byte) (int, error) { return p.reader.Read(b) }

// as returns p, with the state of the TLS connection below it if there is one.
func (p *peekConn) as(conn net.Conn) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return &peekTLSConn{peekConn: p, tls: t}
	}
	return p
}

// peekTLSConn is a peekConn connection over TLS.
type peekTLSConn struct {
	*peekConn
	tls *tls.Conn
}

// ConnectionState returns the state of the TLS connection.
func (p *peekTLSConn) ConnectionState() tls.ConnectionState { return p.tls.ConnectionState() }
