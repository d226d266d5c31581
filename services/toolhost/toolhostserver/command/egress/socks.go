package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// Numbers of SOCKS5 (RFC 1928).
const (
	socksVersion = 5

	methodNone         = 0
	methodUnacceptable = 0xff

	commandConnect = 1

	kindIPv4 = 1
	kindName = 3
	kindIPv6 = 4

	replySucceeded      = 0
	replyNotAllowed     = 2
	replyUnreachable    = 4
	replyNoSuchCommand  = 7
	replyNoSuchAddress  = 8
	replyGeneralFailure = 1
)

// socksError is a request that cannot be served, with the code of the reply.
type socksError struct {
	reply byte
	text  string
}

func (e *socksError) Error() string { return e.text }

// serveSOCKS serves a client that speaks SOCKS5, and closes its connection.
func (p *Proxy) serveSOCKS(ctx context.Context, c *connection) {
	defer func() { _ = c.Close() }()
	method, err := readGreeting(c)
	if err != nil {
		return
	}
	if _, err := c.Write([]byte{socksVersion, method}); err != nil || method == methodUnacceptable {
		return
	}
	name, port, err := readRequest(c)
	if err == nil {
		_ = c.SetDeadline(time.Time{})
		err = p.tunnelSOCKS(ctx, c, name, port)
	}
	if err != nil {
		_, _ = c.Write(socksReply(replyTo(err)))
	}
}

// tunnelSOCKS makes a tunnel. The error is one before that.
func (p *Proxy) tunnelSOCKS(ctx context.Context, c *connection, name string, port uint16) error {
	host, err := p.connect(ctx, name, port)
	if err != nil {
		return err
	}
	if _, err := c.Write(socksReply(replySucceeded)); err != nil {
		_ = host.Close()
		return nil //nolint:nilerr // the client has gone
	}
	tunnel(c, c, host)
	return nil
}

func replyTo(err error) byte {
	var protocol *socksError
	var refusal *Refusal
	switch {
	case errors.As(err, &protocol):
		return protocol.reply
	case errors.As(err, &refusal):
		return replyNotAllowed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return replyGeneralFailure
	}
	return replyUnreachable
}

// socksReply returns a reply. It does not have the address that was dialled.
func socksReply(reply byte) []byte {
	return []byte{socksVersion, reply, 0, kindIPv4, 0, 0, 0, 0, 0, 0}
}

// readGreeting reads the first message of a client and returns the method to answer with.
func readGreeting(r io.Reader) (method byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, err
	}
	if head[0] != socksVersion {
		return 0, fmt.Errorf("version %d of SOCKS", head[0])
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return 0, err
	}
	for _, m := range methods {
		if m == methodNone {
			return methodNone, nil
		}
	}
	return methodUnacceptable, nil
}

// readRequest reads the request of a client. An address is returned as text, which the proxy
// refuses by it.
func readRequest(r io.Reader) (host string, port uint16, err error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", 0, err
	}
	if head[0] != socksVersion {
		return "", 0, &socksError{replyGeneralFailure, fmt.Sprintf("version %d of SOCKS", head[0])}
	}
	length := map[byte]int{kindIPv4: 4, kindIPv6: 16}[head[3]]
	if head[3] == kindName {
		one := make([]byte, 1)
		if _, err := io.ReadFull(r, one); err != nil {
			return "", 0, err
		}
		length = int(one[0])
	}
	if length == 0 {
		return "", 0, &socksError{replyNoSuchAddress, fmt.Sprintf("kind %d of address", head[3])}
	}
	rest := make([]byte, length+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return "", 0, err
	}
	if head[1] != commandConnect {
		return "", 0, &socksError{replyNoSuchCommand, fmt.Sprintf("command %d of SOCKS", head[1])}
	}
	host, port = string(rest[:length]), binary.BigEndian.Uint16(rest[length:])
	if head[3] != kindName {
		a, _ := netip.AddrFromSlice(rest[:length])
		host = a.String()
	}
	return host, port, nil
}
