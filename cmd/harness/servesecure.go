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

// secureFlags control access to what a process serves.
type secureFlags struct {
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"Certificate of this process with intermediates, PEM; used as a server and as a client of other roles."`
	TLSKey  string `name:"tls-key" placeholder:"FILE" help:"Private key of --tls-cert, PEM."`
	TLSCA   string `name:"tls-ca" placeholder:"FILE" help:"CAs that sign the certificates of the mesh, PEM. Roles other than the gateway require a client certificate, and all roles verify the servers that they call."`
	TLSName string `name:"tls-name" placeholder:"NAME" help:"Name in the certificates of all roles, instead of the host of each."`
	Tokens  string `placeholder:"FILE" help:"File of bearer tokens for the gateway, one a line: TOKEN, or TOKEN NAMESPACE,NAMESPACE."`
	Probe   string `placeholder:"ADDR" help:"Address for health checks only (gRPC, plaintext, no token), for the probes of a supervisor."`
}

// natsTLS are the TLS files for the bus.
type natsTLS struct {
	NATSCA   string `name:"nats-ca" placeholder:"FILE" help:"CAs that sign the NATS server's certificate, PEM. Default: the CAs of the system."`
	NATSCert string `name:"nats-cert" placeholder:"FILE" help:"Client certificate for a NATS server that requires one, PEM."`
	NATSKey  string `name:"nats-key" placeholder:"FILE" help:"Private key of --nats-cert, PEM."`
}

func (f natsTLS) files() jetstream.TLSFiles {
	return jetstream.TLSFiles{CA: f.NATSCA, Cert: f.NATSCert, Key: f.NATSKey}
}

// has reports whether this process serves a role.
func (c *serveCmd) has(role string) bool {
	return slices.Contains(c.Roles, role) || slices.Contains(c.Roles, workflow.AllRoles)
}

// secure reads the files and passes their content to the node.
func (c *serveCmd) secure(a *app, cfg *node.Config) error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key must be set together")
	case c.TLSCA != "" && c.TLSCert == "":
		return errors.New("--tls-ca: roles present certificates to each other: set --tls-cert and --tls-key too")
	case c.TLSName != "" && c.TLSCA == "":
		return errors.New("--tls-name: missing --tls-ca, the CAs that sign such certificates")
	case a.given["tokens"] && !c.has(workflow.Gateway):
		return errors.New("--tokens: only the gateway checks tokens and is not in --roles; other roles require certificates with --tls-ca")
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

// checkListen requires TLS and tokens for addresses that other machines can reach,
// unless --insecure is set.
func (c *serveCmd) checkListen(a *app) error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %q: expected HOST:PORT, such as 127.0.0.1:7447", c.Listen)
	}
	ip := net.ParseIP(host)
	if c.NATS != "" && c.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return fmt.Errorf("--listen: other processes cannot connect to %s: set --advertise to the host that they can reach", c.Listen)
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
	// Next to the gateway of a mesh in one process, roles stay on loopback.
	if c.TLSCA == "" && (c.NATS != "" && (len(c.Roles) > 1 || c.has(workflow.AllRoles)) || !gateway) {
		missing, without = append(missing, "--tls-ca"), append(without, "certificates of callers of its roles")
	}
	switch {
	case len(missing) == 0:
		return nil
	case !c.Insecure:
		return fmt.Errorf("--listen: %s is reachable from other machines: set %s (docs/security.md), listen on 127.0.0.1, or use --insecure", c.Listen, strings.Join(missing, ", "))
	}
	a.printNote("WARNING: %s is reachable from other machines without %s: every client that connects can run commands here", c.Listen, strings.Join(without, ", without "))
	return nil
}

// warnOpenFile warns if other users of this machine can read a secret.
func (a *app) warnOpenFile(flag, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		a.printNote("WARNING: %s: every user of this machine can read %s: chmod 600 it", flag, path)
	}
}
