package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/nats-io/nats.go"
)

// dialTimeout bounds the lookup of a server's name with the connection to it, and then
// the handshake. A packet to the address of a dead machine has no answer, so without a
// bound a dial takes as long as the kernel tries.
const dialTimeout = 2 * time.Second

// dialPause is the wait between two tries to reach a server.
const dialPause = 100 * time.Millisecond

// dialer connects to the addresses of a name, in random order. The dialer of the client
// library does not bound the lookup.
type dialer struct{}

// Dial connects to HOST:PORT. Each of several addresses gets an equal part of the time
// that is left.
func (dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("NATS server %q: %w", address, err)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	end, _ := ctx.Deadline()
	var conn net.Conn
	for i, a := range addresses {
		part := net.Dialer{Timeout: time.Until(end) / time.Duration(len(addresses)-i)}
		if conn, err = part.DialContext(ctx, network, net.JoinHostPort(a, port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// dial connects, and waits until end for a server that is starting or whose machine does
// not answer. It does not retry what a server refuses.
func dial(ctx context.Context, cfg Config, end time.Time, options []nats.Option) (*nats.Conn, error) {
	for waiting := false; ; waiting = true {
		nc, err := nats.Connect(cfg.URL, options...)
		if err == nil {
			return nc, nil
		}
		if refused := refusedConnection(cfg.URL, err); refused != nil {
			return nil, refused
		}
		if !unreached(err) || time.Now().After(end) || !pause(ctx, dialPause) {
			return nil, fmt.Errorf("cannot reach NATS at %s within %s: %w; is the server running and the URL right?", Redacted(cfg.URL), cfg.Wait, err)
		}
		if !waiting {
			cfg.Logger.Warn("waiting for NATS", "url", Redacted(cfg.URL), "wait", cfg.Wait, "error", err)
		}
	}
}

// unreached reports whether a connection failed on its way to a server, or in a
// handshake that the server did not continue. Such a server may become available.
func unreached(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) {
		// The client's TLS reports the alerts of a server as such an error.
		return network.Op != "remote error" && network.Op != "local error"
	}
	var other net.Error // a name that is not found, a deadline
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, io.EOF) || errors.As(err, &other)
}
