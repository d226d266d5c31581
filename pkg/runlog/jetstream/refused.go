package jetstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// TLSFiles are the files of a TLS connection. They are read again for each connection.
type TLSFiles struct {
	// CA contains the CAs that signed the server's certificate, PEM. Empty means those
	// of the system.
	CA string
	// Cert and Key are this process's certificate, PEM, for a server that requires one;
	// both or none.
	Cert, Key string
}

func (f TLSFiles) options() ([]nats.Option, error) {
	var options []nats.Option
	for flag, path := range map[string]string{"--nats-ca": f.CA, "--nats-cert": f.Cert, "--nats-key": f.Key} {
		if path == "" {
			continue
		}
		if _, err := os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("--nats-cert and --nats-key belong together: set both or none")
	}
	if f.CA != "" {
		options = append(options, nats.RootCAs(f.CA), nats.Secure())
	}
	if f.Cert != "" {
		options = append(options, nats.ClientCert(f.Cert, f.Key))
	}
	return options, nil
}

// refusedConnection returns an error with the remedy for a server that refuses this
// process, or that this process does not trust. It returns nil for a server that is not
// available yet. Refusals are not retried: a restart picks up a change.
func refusedConnection(url string, err error) error {
	var (
		unknown   x509.UnknownAuthorityError
		wrongHost x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	at := "NATS at " + Redacted(url)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return fmt.Errorf("%s refuses the credentials: %w; put USER:PASSWORD or a JWT and its key into a file for --nats-creds", at, err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%s does not speak TLS: remove --nats-ca, --nats-cert and tls://, or give the server a certificate", at)
	case errors.As(err, &unknown):
		return fmt.Errorf("%s has a certificate of a CA that is not trusted here: pass that CA's file with --nats-ca", at)
	case errors.As(err, &wrongHost):
		return fmt.Errorf("the certificate of %s does not match: %w; name the server in --nats as its certificate does", at, wrongHost)
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of %s is not valid: %w; replace it there", at, invalid)
	case strings.Contains(err.Error(), "tls: certificate required"), strings.Contains(err.Error(), "tls: bad certificate"),
		strings.Contains(err.Error(), "tls: unknown certificate"),
		strings.Contains(err.Error(), "closed by remote after TLS handshake"): // the alert came too late to be read
		return fmt.Errorf("%s requires a certificate that it trusts: set --nats-cert and --nats-key (%w)", at, err)
	}
	return nil
}

// denial records what the server does not permit this user to do.
type denial struct {
	mu   sync.Mutex
	text string
	at   time.Time
	// lasting: a refused subscription stays refused, a refused message is retried.
	lasting bool
	noted   chan struct{} // closed with the first denial
}

// deniedFor is how long a refused message counts.
const deniedFor = time.Minute

// housekeeping is in the refusal of a message that no work depends on: the client deletes a consumer that
// it has replaced, after a reconnect for instance. Otherwise the server does, once it is idle for long.
const housekeeping = `"$JS.API.CONSUMER.DELETE.`

func (d *denial) record(err error) {
	if strings.Contains(err.Error(), housekeeping) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text == "" {
		close(d.noted)
	}
	d.text = strings.TrimPrefix(err.Error(), nats.ErrPermissionViolation.Error()+": ")
	d.at, d.lasting = time.Now(), strings.Contains(strings.ToLower(d.text), "subscription")
}

// clear removes the denials of a lost connection.
func (d *denial) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.lasting = time.Time{}, false
}

// err returns the operations that are denied now; nil for none.
func (d *denial) err(url string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.lasting && time.Since(d.at) > deniedFor {
		return nil
	}
	return fmt.Errorf("NATS at %s does not let this user do its work: %s; give it the permissions in docs/security.md", url, d.text)
}

// until returns a context that ends with ctx, after limit, and with the first denial.
func (d *denial) until(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	go func() {
		select {
		case <-d.noted:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
