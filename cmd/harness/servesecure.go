package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// secureFlags say who may reach what a process serves.
type secureFlags struct {
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"Certificate of this process, PEM with intermediates: as a server, and towards other roles."`
	TLSKey  string `name:"tls-key" placeholder:"FILE" help:"Private key of --tls-cert, PEM."`
	TLSCA   string `name:"tls-ca" placeholder:"FILE" help:"CAs that sign the certificates of the mesh, PEM: roles but the gateway demand a certificate of those who call, and verify those that they call."`
	TLSName string `name:"tls-name" placeholder:"NAME" help:"Name that the certificates of all roles have, in place of the host that each announces."`
	Tokens  string `placeholder:"FILE" help:"Bearer tokens that may call the gateway, a line each: TOKEN, or TOKEN NAMESPACE,NAMESPACE."`
	Probe   string `placeholder:"ADDR" help:"Address that tells of health only (gRPC, in plaintext, without a token), for a supervisor's probes."`
}

// natsTLS are the TLS files for the bus.
type natsTLS struct {
	NATSCA   string `name:"nats-ca" placeholder:"FILE" help:"CAs that sign the NATS server's certificate, PEM. Default: those of the system."`
	NATSCert string `name:"nats-cert" placeholder:"FILE" help:"Certificate for a NATS server that demands one, PEM."`
	NATSKey  string `name:"nats-key" placeholder:"FILE" help:"Private key of --nats-cert, PEM."`
}

func (f natsTLS) files() jetstream.TLSFiles {
	return jetstream.TLSFiles{CA: f.NATSCA, Cert: f.NATSCert, Key: f.NATSKey}
}

// has says that a role is served here.
func (c *serveCmd) has(role string) bool {
	return slices.Contains(c.Roles, role) || slices.Contains(c.Roles, workflow.AllRoles)
}

// secure reads the files and gives what they hold to the node.
func (c *serveCmd) secure(a *app, cfg *node.Config) error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key belong together: give both or none")
	case c.TLSCA != "" && c.TLSCert == "":
		return errors.New("--tls-ca: roles show each other a certificate: give --tls-cert and --tls-key, too")
	case c.TLSName != "" && c.TLSCA == "":
		return errors.New("--tls-name: give the CAs that sign such certificates with --tls-ca, too")
	case a.given["tokens"] && !c.has(workflow.Gateway):
		return errors.New("--tokens: only the gateway takes tokens, and it is not among the roles; other roles demand certificates with --tls-ca")
	}
	if c.TLSCert != "" {
		var err error
		if cfg.TLS, err = tlsfiles.Load(tlsfiles.Files{Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA, Name: c.TLSName}, a.log); err != nil {
			return err
		}
		if err := cfg.TLS.Check(""); err != nil {
			return err
		}
		a.warnOpenFile("--tls-key", c.TLSKey)
	}
	if c.Tokens != "" && c.has(workflow.Gateway) {
		var err error
		if cfg.Tokens, err = access.Open(c.Tokens, a.log); err != nil {
			return fmt.Errorf("--tokens: %w", err)
		}
		a.warnOpenFile("--tokens", c.Tokens)
	}
	cfg.Probe, cfg.NATSFiles = c.Probe, c.files()
	return nil
}

// checkListen keeps what is open to the network behind TLS and tokens, unless it is
// asked for without.
func (c *serveCmd) checkListen(a *app) error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %q: want HOST:PORT, such as 127.0.0.1:7447", c.Listen)
	}
	ip := net.ParseIP(host)
	if c.NATS != "" && c.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return fmt.Errorf("--listen: other processes cannot connect to %s: say with --advertise how they reach this one", c.Listen)
	}
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	gateway := c.has(workflow.Gateway)
	var missing, without []string
	if c.TLSCert == "" {
		missing, without = append(missing, "--tls-cert and --tls-key"), append(without, "TLS")
	}
	if gateway && c.Tokens == "" {
		missing, without = append(missing, "--tokens"), append(without, "tokens")
	}
	// Beside the gateway of a mesh that is all in this process, roles stay on loopback.
	if c.TLSCA == "" && (c.NATS != "" && (len(c.Roles) > 1 || c.has(workflow.AllRoles)) || !gateway) {
		missing, without = append(missing, "--tls-ca"), append(without, "certificates of those who call its roles")
	}
	switch {
	case len(missing) == 0:
		return nil
	case !c.Insecure:
		return fmt.Errorf("--listen: %s is open to other machines: give %s (docs/security.md), listen on 127.0.0.1, or say --insecure", c.Listen, strings.Join(missing, ", "))
	}
	a.note("WARNING: %s is open to other machines without %s: whoever reaches it can run commands here", c.Listen, strings.Join(without, ", without "))
	return nil
}

// warnOpenFile says that others on this machine can read a secret.
func (a *app) warnOpenFile(flag, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		a.note("WARNING: %s: every user of this machine can read %s: chmod 600 it", flag, path)
	}
}
