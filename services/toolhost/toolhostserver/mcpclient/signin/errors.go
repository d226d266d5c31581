package signin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// maxCause bounds what an error quotes of a server, in bytes.
const maxCause = 300

// cause is an error on one line, of at most maxCause bytes: servers write parts of most of them.
type cause struct {
	error
	secrets []string
}

// Error returns the text without secrets.
func (c cause) Error() string {
	return content.Line(content.Clean(without(c.error.Error(), c.secrets)), maxCause)
}

func (c cause) Unwrap() error { return c.error }

// without replaces secrets in a text, also as they are in a form.
func without(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret]")
			text = strings.ReplaceAll(text, url.QueryEscape(secret), "[secret]")
		}
	}
	return text
}

// plain returns the cause of a failed request in few words, without its address and secrets.
func plain(err error, secrets ...string) error {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return cause{fmt.Errorf("its certificate cannot be verified: %w", certificate.Err), secrets}
	}
	var request *url.Error
	if errors.As(err, &request) {
		return cause{request.Err, secrets}
	}
	return cause{err, secrets}
}
