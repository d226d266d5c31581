package tlsfiles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// ServerCredentials make a gRPC server speak TLS and, with clients set, require a client
// certificate. A refused connection is logged.
func (id *Identity) ServerCredentials(clients bool, logger *slog.Logger) credentials.TransportCredentials {
	demanded := AnyClient
	if clients {
		demanded = SignedClient
	}
	return &serverCredentials{TransportCredentials: credentials.NewTLS(id.Server(demanded, "h2")), logger: logger}
}

type serverCredentials struct {
	credentials.TransportCredentials
	logger *slog.Logger
}

func (c *serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil && !errors.Is(err, io.EOF) {
		c.logger.Warn("a connection was refused", "remote", raw.RemoteAddr().String(), "error", err)
	}
	return conn, info, err
}

func (c *serverCredentials) Clone() credentials.TransportCredentials {
	return &serverCredentials{c.TransportCredentials.Clone(), c.logger}
}

// ClientCredentials dial with TLS: they verify the server and present the certificate of
// this process, as the files are when the connection is opened. Each check may refuse the
// certificate of a server that is otherwise trusted.
func (id *Identity) ClientCredentials(checks ...func(server *x509.Certificate) error) credentials.TransportCredentials {
	return &clientCredentials{id: id, name: id.files.Name, checks: checks}
}

type clientCredentials struct {
	id     *Identity
	name   string
	checks []func(*x509.Certificate) error
}

func (c *clientCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg := c.id.client()
	cfg.ServerName = c.name
	if cfg.ServerName == "" {
		cfg.ServerName = hostOf(authority)
	}
	cfg.VerifyConnection = func(state tls.ConnectionState) error { return c.verify(authority, state) }
	conn, info, err := credentials.NewTLS(cfg).ClientHandshake(ctx, cfg.ServerName, raw)
	if err != nil {
		return nil, nil, c.id.files.explainHandshake(err, authority, cfg.ServerName, time.Now())
	}
	return newAlerting(conn), info, nil
}

// verify applies the checks after the chain has been verified.
func (c *clientCredentials) verify(address string, state tls.ConnectionState) error {
	for _, check := range c.checks {
		if err := check(state.PeerCertificates[0]); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
	return nil
}

var errClientOnly = errors.New("these credentials only dial")

func (c *clientCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errClientOnly
}

func (c *clientCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (c *clientCredentials) Clone() credentials.TransportCredentials {
	return &clientCredentials{c.id, c.name, c.checks}
}

func (c *clientCredentials) OverrideServerName(name string) error {
	c.name = name
	return nil
}

// Accepted returns credentials for a gRPC server whose connections were accepted, and
// their handshakes made, by another listener.
func Accepted() credentials.TransportCredentials { return acceptedCredentials{} }

type acceptedCredentials struct{}

// State is implemented by connections that know the state of the TLS connection below.
type State interface{ ConnectionState() tls.ConnectionState }

func (acceptedCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	level := credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}
	if s, ok := conn.(State); ok {
		level.SecurityLevel = credentials.PrivacyAndIntegrity
		return conn, credentials.TLSInfo{State: s.ConnectionState(), CommonAuthInfo: level}, nil
	}
	return conn, plain{level}, nil
}

// plain is the AuthInfo of a connection without TLS.
type plain struct{ credentials.CommonAuthInfo }

func (plain) AuthType() string { return "insecure" }

func (acceptedCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials only serve")
}

func (acceptedCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "accepted"}
}
func (a acceptedCredentials) Clone() credentials.TransportCredentials { return a }
func (acceptedCredentials) OverrideServerName(string) error           { return nil }
