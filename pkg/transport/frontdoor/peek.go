package frontdoor

import (
	"bufio"
	"crypto/tls"
	"net"
)

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

// peekBuffer is the least that a bufio.Reader takes.
const peekBuffer = 16

func newPeeked(conn net.Conn) *peeked {
	return &peeked{Conn: conn, reader: bufio.NewReaderSize(conn, peekBuffer)}
}

func (p *peeked) peek(n int) ([]byte, error) { return p.reader.Peek(n) }

// Read returns what was looked at first. Once that is gone it costs nothing: larger
// reads go past an empty buffer.
func (p *peeked) Read(b []byte) (int, error) { return p.reader.Read(b) }

// as keeps what is known of the connection beneath.
func (p *peeked) as(conn net.Conn) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return &peekedTLS{peeked: p, tls: t}
	}
	return p
}

// peekedTLS is one with TLS beneath it.
type peekedTLS struct {
	*peeked
	tls *tls.Conn
}

// ConnectionState is that of the TLS beneath.
func (p *peekedTLS) ConnectionState() tls.ConnectionState { return p.tls.ConnectionState() }
