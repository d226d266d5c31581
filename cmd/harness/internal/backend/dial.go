package backend

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
)

// maxMessage is the largest message from a gateway: a conversation is one message.
const maxMessage = 64 << 20

// dial connects to HOST:PORT or unix:PATH. Loopback and Unix sockets are used without
// TLS, any other address with it, unless http:// or https:// or Options.TLS and CA
// select otherwise. A token is never sent to another machine in clear text.
func dial(opts Options) (*grpc.ClientConn, error) {
	address := opts.Server
	target, plain, err := parseServer(address)
	if err != nil {
		return nil, err
	}
	explicit := strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "http:")
	switch {
	case explicit && opts.TLS:
		return nil, fmt.Errorf("--tls: %s has no TLS: use https://HOST:PORT or HOST:PORT", address)
	case !explicit && (opts.TLS || opts.CA != ""):
		plain = false
	}
	options := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithUserAgent("harness"),
		// A gateway that disappears is detected within half a minute, and one that
		// returns is found within two seconds.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if plain {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	} else {
		trust, err := tlsfiles.Load(tlsfiles.Files{CA: opts.CA}, opts.Logger)
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.WithTransportCredentials(trust.ClientCredentials()))
	}
	target, credential, err := findToken(opts, target, plain)
	if err != nil {
		return nil, err
	}
	if credential != nil {
		options = append(options, grpc.WithPerRPCCredentials(credential))
	}
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, fmt.Errorf("--server: %q: %w", address, err)
	}
	return conn, nil
}

func parseServer(address string) (target string, plain bool, err error) {
	scheme, rest, found := strings.Cut(address, "://")
	switch {
	case strings.HasPrefix(address, "unix:"):
		return address, true, nil
	case found && scheme == "http":
		target, plain = rest, true
	case found && scheme == "https":
		target = rest
	case found:
		return "", false, fmt.Errorf("--server: %q: expected HOST:PORT, unix:PATH, http://HOST:PORT or https://HOST:PORT", address)
	default:
		target, plain = address, isLocal(address)
	}
	_, port, err := net.SplitHostPort(target)
	if err != nil || port == "" {
		return "", false, fmt.Errorf("--server: %q: expected HOST:PORT, such as 127.0.0.1:7447", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", false, fmt.Errorf("--server: %q: port %q: expected a number from 1 to 65535", address, port)
	}
	return target, plain, nil
}

// isLocal reports whether a connection to a target stays on this machine.
func isLocal(target string) bool {
	if strings.HasPrefix(target, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip.IsLoopback()
}
