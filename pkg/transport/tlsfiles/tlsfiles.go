// Package tlsfiles configures TLS from the files of a process: its certificate and key,
// and the CAs that it trusts. The files are read again when they change, so a renewed
// certificate or another CA is used from the next connection on, without a restart.
//
// Each error is one line that names the certificate, its purpose and what to do.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/transport/reread"
)

// Files are the paths of the TLS files of a process.
type Files struct {
	// Cert and Key are the certificate, followed by its intermediates, and its private
	// key, in PEM. Both may be empty: then the process only dials.
	Cert, Key string
	// CA contains the CAs, in PEM, that sign the certificates of other processes. Empty
	// means the CAs of the system.
	CA string
	// Name is the host that the certificates of others must name; empty means the host
	// that is dialled.
	Name string
	// Services: the process dials services of users, whose CAs are those of --target-ca.
	Services bool
}

// caFlag is the flag of CA, for errors.
func (f Files) caFlag() string {
	if f.Services {
		return "--target-ca"
	}
	return "--tls-ca"
}

// Identity is the certificate of a process and the CAs that it trusts. It is safe for
// concurrent use.
type Identity struct {
	files Files
	value *reread.Value[material]
}

// material is the parsed content of the files.
type material struct {
	cert *tls.Certificate // nil without one
	cas  *x509.CertPool   // nil means those of the system
}

// Load reads the files.
func Load(files Files, logger *slog.Logger) (*Identity, error) {
	value, err := reread.New(files.read, func(err error) {
		logger.Warn("TLS files cannot be read; the previous content is still used", "error", err)
	}, files.Cert, files.Key, files.CA)
	if err != nil {
		return nil, err
	}
	return &Identity{files: files, value: value}, nil
}

func (f Files) read() (m material, err error) {
	if f.Cert != "" {
		cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		var gone *os.PathError
		switch {
		case errors.As(err, &gone) && gone.Path == f.Key:
			return m, fmt.Errorf("--tls-key: %w", err)
		case errors.As(err, &gone):
			return m, fmt.Errorf("--tls-cert: %w", err)
		case err != nil:
			return m, fmt.Errorf("--tls-cert, --tls-key: %s and %s are not a pair or not PEM: %w", f.Cert, f.Key, err)
		}
		m.cert = &cert
	}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return m, fmt.Errorf("%s: %w", f.caFlag(), err)
		}
		m.cas = x509.NewCertPool()
		if !m.cas.AppendCertsFromPEM(pem) {
			return m, fmt.Errorf("%s: %s contains no PEM certificate", f.caFlag(), f.CA)
		}
	}
	return m, nil
}

// Mutual reports whether other processes must present a certificate.
func (id *Identity) Mutual() bool { return id.files.CA != "" }

// Clients is what a server demands of its clients.
type Clients int

const (
	// AnyClient needs no certificate.
	AnyClient Clients = iota
	// KnownClient may present a certificate, and one that is presented must be signed by
	// one of the CAs.
	KnownClient
	// SignedClient must present a certificate that one of the CAs has signed.
	SignedClient
)

// auth maps what a server demands to the setting of TLS.
var auth = map[Clients]tls.ClientAuthType{
	AnyClient: tls.NoClientCert, KnownClient: tls.VerifyClientCertIfGiven, SignedClient: tls.RequireAndVerifyClientCert,
}

// Server returns the configuration of a server that speaks one of the protocols: the
// first that the client lists too.
func (id *Identity) Server(clients Clients, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := id.value.Get()
			cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, Certificates: []tls.Certificate{*m.cert}}
			cfg.ClientAuth, cfg.ClientCAs = auth[clients], m.cas
			return cfg, nil
		},
	}
}

// client returns the configuration of one outgoing connection.
func (id *Identity) client() *tls.Config {
	m := id.value.Get()
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: m.cas}
	if m.cert != nil {
		cfg.Certificates = []tls.Certificate{*m.cert}
	}
	return cfg
}

// Check returns an error if the certificate of this process does not name host, by which
// others dial it (an empty host is not checked), or if other processes that require
// certificates would not accept it.
func (id *Identity) Check(host string) error {
	leaf := id.Leaf()
	if leaf == nil {
		return nil
	}
	if err := id.Trouble(time.Now()); err != nil {
		return err
	}
	if id.files.Name != "" {
		host = id.files.Name
	}
	if host != "" && leaf.VerifyHostname(host) != nil {
		return fmt.Errorf("--tls-cert: %s names %s and not %s, the host by which others dial this process: use a certificate that names it, or set --advertise or --tls-name", id.files.Cert, names(leaf), host)
	}
	if !id.Mutual() {
		return nil
	}
	m := id.value.Get()
	between := x509.NewCertPool()
	for _, der := range m.cert.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	for use, as := range map[x509.ExtKeyUsage]string{x509.ExtKeyUsageServerAuth: "server (serverAuth)", x509.ExtKeyUsageClientAuth: "client (clientAuth)"} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: m.cas, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}})
		var invalid x509.CertificateInvalidError
		switch {
		case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
			return fmt.Errorf("--tls-cert: %s may not be used as a %s, and a role is both: create a certificate with serverAuth and clientAuth", id.files.Cert, as)
		case err != nil:
			return fmt.Errorf("--tls-cert: %s is not signed by a CA in %s, so no other role would accept it: %w", id.files.Cert, id.files.CA, err)
		}
	}
	return nil
}

// Trouble returns why the certificate of this process cannot be used now.
func (id *Identity) Trouble(now time.Time) error {
	leaf := id.Leaf()
	var err error
	switch {
	case leaf == nil:
	case now.After(leaf.NotAfter):
		err = fmt.Errorf("the certificate %s has expired on %s: replace it and its key; they are read again without a restart", id.files.Cert, day(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		err = fmt.Errorf("the certificate %s is not valid before %s: replace it, or correct the clock", id.files.Cert, day(leaf.NotBefore))
	}
	if _, unread := id.value.Try(); err != nil && unread != nil {
		err = fmt.Errorf("%w (the current files cannot be read: %w)", err, unread)
	}
	return err
}

// Leaf returns the certificate of this process; nil if it has none.
func (id *Identity) Leaf() *x509.Certificate {
	if m := id.value.Get(); m.cert != nil {
		return m.cert.Leaf
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// maxNames bounds the names of a certificate that a message lists.
const maxNames = 5

// names returns the hosts that a certificate is valid for.
func names(c *x509.Certificate) string {
	all := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	switch {
	case len(all) == 0:
		return "no host"
	case len(all) > maxNames:
		all = append(all[:maxNames], "…")
	}
	return strings.Join(all, ", ")
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
