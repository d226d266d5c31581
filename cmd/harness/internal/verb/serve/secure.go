package serve

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
)

// secureFlags control access to what a process serves.
type secureFlags struct {
	TLSCert  string `name:"tls-cert" placeholder:"FILE" help:"Certificate of this process with intermediates, PEM; used as a server and as a client of other roles."`
	TLSKey   string `name:"tls-key" placeholder:"FILE" help:"Private key of --tls-cert, PEM."`
	TLSCA    string `name:"tls-ca" placeholder:"FILE" help:"CAs that sign the certificates of the mesh, PEM. Roles other than the gateway require a client certificate, and all roles verify the servers that they call."`
	TLSName  string `name:"tls-name" placeholder:"NAME" help:"Name in the certificates of all roles, instead of the host of each."`
	TargetCA string `name:"target-ca" placeholder:"FILE" help:"CAs that sign the certificates of services on other machines that runs call: hooks, checks, context providers, summarizers and --target; PEM. Default: the CAs of the system."`
	Tokens   string `placeholder:"FILE" help:"File of bearer tokens for the gateway, one a line: TOKEN, its namespaces, and attributes such as roots=DIR. They replace the key at the gateway's address."`
	KeyFile  string `placeholder:"FILE" help:"File of the key that the gateway requires on loopback; is made if it does not exist. Default: gateway.key in the data directory."`
	InputKey string `placeholder:"FILE" help:"File of keys, one a line, that only gateway and repair have: approvals, answers, resumes and changes of the mode count only with a seal of one; the first seals. With --nats. Default: derived from --mesh-key."`
	Open     bool   `name:"open-loopback" help:"Require no key on loopback and at the local socket. Every user of this machine, and every command of a run, can use the gateway and call roles."`
	Probe    string `placeholder:"ADDR" help:"Address for health checks only (gRPC, plaintext, no token), for the probes of a supervisor."`
}

// has reports whether this process serves a role.
func (c *Cmd) has(role string) bool {
	return slices.Contains(c.Roles, role) || slices.Contains(c.Roles, workflow.AllRoles)
}

// secure reads the files and passes their content to the node.
func (c *Cmd) secure(a *console.Console, cfg *node.Config) error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key must be set together")
	case c.TLSCA != "" && c.TLSCert == "":
		return errors.New("--tls-ca: roles present certificates to each other: set --tls-cert and --tls-key too")
	case c.TLSName != "" && c.TLSCA == "":
		return errors.New("--tls-name: missing --tls-ca, the CAs that sign such certificates")
	case a.Given["tokens"] && !c.has(workflow.Gateway):
		return errors.New("--tokens: only the gateway checks tokens and is not in --roles; other roles require certificates with --tls-ca")
	case a.Given["allow-target"] && !c.has(workflow.Gateway):
		return errors.New("--allow-target: only for the gateway, which is not in --roles")
	case a.Given["token-sandbox-least"] && !c.has(workflow.Gateway):
		return errors.New("--token-sandbox-least: only for the gateway, which is not in --roles; --sandbox-least is the least of a tool host")
	case a.Given["token-sandbox-least"] && c.Tokens == "":
		return errors.New("--token-sandbox-least: missing --tokens, whose runs it confines")
	}
	if err := c.inputKey(a, cfg); err != nil {
		return err
	}
	if c.TLSCert != "" {
		var err error
		if cfg.TLS, err = tlsfiles.Load(tlsfiles.Files{Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA, Name: c.TLSName}, a.Log); err != nil {
			return err
		}
		if err := cfg.TLS.Check(""); err != nil {
			return err
		}
		a.WarnOpenFile("--tls-key", c.TLSKey)
	}
	if c.TargetCA != "" {
		var err error
		if cfg.Targets, err = tlsfiles.Load(tlsfiles.Files{CA: c.TargetCA, Services: true}, a.Log); err != nil {
			return err
		}
	}
	if c.Tokens != "" && c.has(workflow.Gateway) {
		var err error
		if cfg.Tokens, err = access.Open(c.Tokens, a.Log); err != nil {
			return fmt.Errorf("--tokens: %w", err)
		}
		a.WarnOpenFile("--tokens", c.Tokens)
		if lines := cfg.Tokens.Unbounded(); len(lines) > 0 {
			a.Report("--tokens: %s: without roots=, runs of these tokens can use every folder of the tool host's user: line %s (docs/security.md)", c.Tokens, joined(lines))
		}
	}
	if c.Tokens != "" && c.has(workflow.Gateway) && c.TokenSandboxLeast == sandbox.Name(sandbox.Off) {
		a.Report("WARNING: --token-sandbox-least off: commands of runs that are started with a token run without a sandbox where the tool host has none, or where a person approves it; they reach every folder, whatever roots= says (docs/security.md)")
	}
	cfg.Probe, cfg.NATSFiles = c.Probe, c.Files()
	return c.keys(a, cfg)
}

// inputKey configures the keys of the seals of inputs.
func (c *Cmd) inputKey(a *console.Console, cfg *node.Config) error {
	switch {
	case c.InputKey == "":
		return nil
	case !c.has(workflow.Gateway) && !c.has(workflow.Repair):
		return errors.New("--input-key: only the gateway and repair have it, and neither is in --roles")
	case c.NATS == "":
		return errors.New("--input-key: only with --nats: no other process reaches the embedded server")
	}
	cfg.InputKey = c.InputKey
	a.WarnOpenFile("--input-key", c.InputKey)
	return nil
}

// joined returns numbers as a list for people.
func joined(numbers []int) string {
	var texts []string
	for _, n := range numbers {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ", ")
}

// keys configures the key of the gateway.
func (c *Cmd) keys(a *console.Console, cfg *node.Config) error {
	if a.Given["key-file"] && !c.has(workflow.Gateway) {
		return errors.New("--key-file: only for the gateway, which is not in --roles")
	}
	if err := a.Conflict("key-file", "open-loopback"); err != nil {
		return err
	}
	cfg.KeyFile, cfg.OpenLoopback = c.KeyFile, c.Open
	switch {
	case c.Open && c.has(workflow.Gateway):
		a.Report("WARNING: --open-loopback: every user of this machine and every command of a run can start, answer and approve runs")
	case c.Open:
		a.Report("WARNING: --open-loopback: every user of this machine and every command of a run can call %s", strings.Join(c.Roles, ", "))
	}
	cfg.Notice = func(text string) { a.Report("%s", text) }
	notes, err := localkey.UserNotes(a.Env)
	switch {
	case err == nil:
		cfg.Notes = notes
	case c.has(workflow.Gateway) && c.Tokens == "" && !c.Open && onLoopback(c.Listen): // otherwise its address requires no key
		a.Log.Warn("clients cannot find the gateway's key by its address; use --token-file", "error", err)
	}
	return nil
}

// onLoopback reports whether only this machine reaches an address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// defaultListen returns the address without --listen: clients look for a gateway at its port,
// and other roles are found over the bus.
func (c *Cmd) defaultListen() string {
	if c.has(workflow.Gateway) {
		return "127.0.0.1:7447"
	}
	return "127.0.0.1:0"
}

// checkListen requires TLS and tokens for addresses that other machines can reach,
// unless --insecure is set.
func (c *Cmd) checkListen(a *console.Console) error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %q: expected HOST:PORT, such as 127.0.0.1:7447", c.Listen)
	}
	ip := net.ParseIP(host)
	if c.NATS != "" && c.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return fmt.Errorf("--listen: other processes cannot connect to %s: set --advertise to the host that they can reach", c.Listen)
	}
	if onLoopback(c.Listen) {
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
	// Without NATS no other process calls the roles next to a gateway, and tokens admit.
	if c.TLSCA == "" && (c.NATS != "" && (len(c.Roles) > 1 || c.has(workflow.AllRoles)) || !gateway) {
		missing, without = append(missing, "--tls-ca"), append(without, "certificates of callers of its roles")
	}
	switch {
	case len(missing) == 0:
		return nil
	case !c.Insecure:
		return fmt.Errorf("--listen: %s is reachable from other machines: set %s (docs/security.md), listen on 127.0.0.1, or use --insecure", c.Listen, strings.Join(missing, ", "))
	}
	a.Report("WARNING: %s is reachable from other machines without %s: every client that connects can run commands here", c.Listen, strings.Join(without, ", without "))
	return nil
}

// checkCORS checks the origins of web pages. Pages of all origins need tokens:
// the key has every right, so it is for no page, and a gateway that requires nothing would
// serve each page that its user opens.
func (c *Cmd) checkCORS() error {
	if err := gatewayhttp.CheckOrigins(c.CORS); err != nil {
		return err
	}
	if slices.Contains(c.CORS, gatewayhttp.AnyOrigin) && c.Tokens == "" {
		return errors.New("pages of all origins may call a gateway with --tokens only: set it, or name the origins, such as --cors https://app.example (docs/http.md)")
	}
	return nil
}
