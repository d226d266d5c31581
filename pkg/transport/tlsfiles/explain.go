package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// explainHandshake returns one line that names why a server was not trusted and what to
// do.
func (f Files) explainHandshake(err error, address, host string, now time.Time) error {
	var (
		wrongHost x509.HostnameError
		unknown   x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		notTLS    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &wrongHost):
		return fmt.Errorf("the certificate of %s names %s and not %s: reach it under a name of the certificate (serve --advertise), or give it one that names %s", address, names(wrongHost.Certificate), host, host)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is signed by a CA that is not trusted: pass that CA's file with %s", address, f.caFlag())
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.Before(invalid.Cert.NotBefore):
		return fmt.Errorf("the certificate of %s is not valid before %s: replace it there, or correct the clock of this machine", address, day(invalid.Cert.NotBefore))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate of %s has expired on %s: replace it there; it is read again without a restart", address, day(invalid.Cert.NotAfter))
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of %s is not valid for a server: %w", address, err)
	case errors.As(err, &notTLS) && f.Services:
		return fmt.Errorf("%s does not speak TLS, with which services on other machines are called: give it a certificate, or run it on 127.0.0.1", address)
	case errors.As(err, &notTLS):
		return fmt.Errorf("%s does not speak TLS: start it with --tls-cert and --tls-key, or use http:// without --tls", address)
	}
	return err
}

// Reason returns gRPC's text about a failed connection in one line, without its
// prefixes, with what to do if that is known.
func Reason(text string) string {
	reason, _ := Explain(text)
	return reason
}

// Explain is Reason. refused reports whether a server answered and one side does not
// trust the other.
func Explain(text string) (reason string, refused bool) {
	if at := strings.LastIndex(text, `desc = "`); at >= 0 {
		if quoted, err := strconv.QuotedPrefix(text[at+len("desc = "):]); err == nil {
			if inner, err := strconv.Unquote(quoted); err == nil {
				text = inner
			}
		}
	}
	for alert, meaning := range alerts {
		if strings.Contains(text, "remote error: tls: "+alert) {
			return meaning, true
		}
	}
	if strings.HasPrefix(text, "error reading server preface: ") {
		return "the server does not answer without TLS: if it speaks TLS, use https://, --tls or --tls-ca (between roles: --tls-cert, --tls-key and --tls-ca on all)", true
	}
	text, refused = strings.CutPrefix(text, "transport: authentication handshake failed: ")
	for _, wrapping := range []string{"transport: Error while dialing: ", "transport: "} {
		text = strings.TrimPrefix(text, wrapping)
	}
	return strings.Join(strings.Fields(text), " "), refused
}

// alerts maps the alert of a server that does not trust its client to what to do.
var alerts = map[string]string{
	"certificate required":          "the server demands a certificate: give --tls-cert, --tls-key and --tls-ca",
	"bad certificate":               "the server does not accept the certificate of this process: it has to be signed by a CA of the server's --tls-ca",
	"unknown certificate authority": "the server does not trust the CA of this process's certificate: it has to be signed by a CA of the server's --tls-ca",
	"expired certificate":           "the server says that the certificate of this process has expired: replace it",
}
