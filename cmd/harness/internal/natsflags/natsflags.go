// Package natsflags is the flags with which verbs reach a NATS server over TLS, and the form of
// the errors about them.
package natsflags

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
)

// Named returns an error of the bus with the flag that it is about.
func Named(err error) error {
	if strings.HasPrefix(err.Error(), "--") {
		return err
	}
	return fmt.Errorf("--nats: %w", err)
}

// TLS are the TLS files for the bus.
type TLS struct {
	NATSCA   string `name:"nats-ca" placeholder:"FILE" help:"CAs that sign the NATS server's certificate, PEM. Default: the CAs of the system."`
	NATSCert string `name:"nats-cert" placeholder:"FILE" help:"Client certificate for a NATS server that requires one, PEM."`
	NATSKey  string `name:"nats-key" placeholder:"FILE" help:"Private key of --nats-cert, PEM."`
}

func (f TLS) Files() jetstream.TLSFiles {
	return jetstream.TLSFiles{CA: f.NATSCA, Cert: f.NATSCert, Key: f.NATSKey}
}
