package node

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/bridge"
)

// Config of a node.
type Config struct {
	// Data is the data directory: the embedded server's files and the tool host's
	// ledger. One process at a time uses it.
	Data string
	// SharedData: the user has not named Data, and other processes of the mesh may use it. Then
	// roles that store nothing do not lock it, and the others continue without the lock: the
	// ledger of the tool host has a separate one. Only with NATS.
	SharedData bool
	// NATS is the URL of an external server; empty means an embedded one.
	NATS string
	// Credentials is a file with a NATS user's JWT and key; empty means none.
	Credentials string
	// NATSFiles are the TLS files for the external server.
	NATSFiles jetstream.TLSFiles
	// TLS is the identity of this process towards other roles and clients; nil means no
	// TLS. If it has CAs, roles other than the gateway require a certificate.
	TLS *tlsfiles.Identity
	// Tokens admit callers at the gateway's address. Without them a gateway on loopback
	// requires its key, and one elsewhere admits every caller. The local socket requires
	// the key in any case.
	Tokens *access.Tokens
	// KeyFile is the file of the gateway's key, which is made if it does not exist; empty
	// means gateway.key in Data.
	KeyFile string
	// InputKey is a file with the keys of the seals of inputs, for a gateway and repair on an
	// external server; empty means the key that follows from the key of the mesh, if
	// there is one.
	InputKey string
	// OpenLoopback: the local socket, and a gateway and roles on loopback, require no key.
	OpenLoopback bool
	// Confined overrides whether the commands of a tool host in this process are confined,
	// so that they cannot read the gateway's key. Nil means that the tool host tries it.
	Confined func() bool
	// Notes is the folder in which clients find the key; without Dir it is not noted.
	Notes localkey.Notes
	// Notice gets lines for the user about the key; nil discards them.
	Notice func(string)
	// CORS are the origins whose pages may call the gateway over HTTP.
	CORS []string
	// Probe is an address for health checks only, in plaintext; empty means none.
	Probe string
	// NATSWait bounds the wait for an external server. Default 3 s.
	NATSWait time.Duration
	// Roles to run; all means all of them.
	Roles []string
	// Listen is the TCP address of all roles of this node; empty means only the local
	// socket. In a node with a gateway, the other roles are called at the gateway's address.
	Listen string
	// IdleTimeout is how long a connection to Listen may have no call; default 10 min. A
	// stream is a call.
	IdleTimeout time.Duration
	// PeerConnections bounds the connections of one peer to Listen at the same time; default
	// 1024.
	PeerConnections int
	// MeshKey is the key that processes on one machine present to each other.
	MeshKey MeshKey
	// Executor is the name of the executor that the role bridge calls, and Target its
	// address, HOST:PORT. TargetTimeout bounds a call; default 5 min.
	Executor, Target string
	TargetTimeout    time.Duration
	// Advertise is the host at which others reach this machine; empty means the host of
	// Listen.
	Advertise string
	// Sync is always (default) or interval, for the embedded server.
	Sync string
	// Scripts is the folder of scripted models. Requests over the network may name models in
	// it only, and in a mesh of several processes all runs may. Empty means none.
	Scripts string
	// Targets has the CAs of services that runs call. Default: those of the system.
	Targets *tlsfiles.Identity
	// AllowTargets are the services, as HOST:PORT, that requests over the network may name
	// in hooks, checks, context providers and summarizers, unless they come with the key.
	AllowTargets []string
	// QualityAlways has the work of all runs judged.
	QualityAlways bool
	// Features are those that some runs have.
	Features []*harnessv1.Feature
	// SandboxLeast is the least level at which the tool host runs commands: off (default),
	// kernel or full.
	SandboxLeast string
	// TokenLeast is the level below which nothing of a run that is started with a token runs:
	// kernel (default), full or off.
	TokenLeast string
	// Secrets are more files that commands must not read.
	Secrets []string
	// SandboxPrivateHosts are hosts with private addresses that commands may reach if their
	// run names them too.
	SandboxPrivateHosts []string
	// ToolServices are the tool services that all runs of the tool host have.
	ToolServices []*harnessv1.McpServer
	// Takeover is how long a worker may be dead, hung or disconnected before another one
	// gets its step, for the embedded server. Default 5 s.
	Takeover time.Duration
	// Drain is how long work may continue after Stop. Default 0.
	Drain time.Duration
	// HostPatience is how long the tool host of a started call may be away while another
	// one answers. Default 2 min.
	HostPatience time.Duration
	// Concurrency bounds the steps, or jobs, that each executor works on at the same time.
	// Default 256; of inference 8.
	Concurrency int
	// Instance is the unique name of this process; empty means a generated one.
	Instance string
	// Program is the version of the program.
	Program string
	// ModelEnv looks up the keys and addresses of model providers. Default os.Getenv.
	ModelEnv func(string) string
	// Catalogue is the model catalogue of the gateway, the turn worker and the inference
	// worker. Nil means the embedded one.
	Catalogue *catalogue.Catalogue
	// Logger; nil discards.
	Logger *slog.Logger
	// Interrupt interrupts every running run that is not in Keep before the executors
	// start, so that old runs do not continue unasked.
	Interrupt bool
	// Keep are runs, as NAMESPACE/RUN.
	Keep []string
	// Background is set in the background process of a user; it serves all runs, also with
	// Interrupt.
	Background *Background
	// Environments are those that clients have given to runs; nil: all runs have that of this process.
	Environments *Environments
	// Metrics is the HTTP address of metrics, liveness and readiness; empty means none.
	Metrics string
	// Stderr gets a line for each role that is ready; nil means none.
	Stderr io.Writer
}

// role returns the role of a process that has only one.
func (c *Config) role() string {
	if len(c.Roles) == 1 {
		return c.Roles[0]
	}
	return ""
}

func (c *Config) complete() error {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.ModelEnv == nil {
		c.ModelEnv = os.Getenv
	}
	bridging := slices.Contains(c.Roles, workflow.Bridge)
	if c.Catalogue == nil {
		c.Catalogue = catalogue.Default()
	}
	if len(c.Roles) == 0 || slices.Contains(c.Roles, workflow.AllRoles) {
		c.Roles = workflow.Roles()
		if bridging {
			c.Roles = append(c.Roles, workflow.Bridge)
		}
	}
	c.IdleTimeout = cmp.Or(c.IdleTimeout, defaultIdle)
	c.PeerConnections = cmp.Or(c.PeerConnections, defaultPeerConnections)
	for _, r := range c.Roles {
		if !slices.Contains(workflow.Roles(), r) && r != workflow.Bridge {
			return fmt.Errorf("--roles: unknown role %q: must be all, %s or %s", r, strings.Join(workflow.Roles(), ", "), workflow.Bridge)
		}
	}
	switch {
	case bridging && (c.Executor == "" || c.Target == ""):
		return errors.New("--roles bridge needs --executor NAME and --target HOST:PORT, where that executor serves harness.v1.ExecutorService")
	case !bridging && (c.Executor != "" || c.Target != ""):
		return errors.New("--executor and --target: only for the role bridge: add it to --roles")
	case bridging && bridge.CheckName(c.Executor) != nil:
		return fmt.Errorf("--executor: %w", bridge.CheckName(c.Executor))
	case bridging && slices.Contains(c.Roles, c.Executor):
		return fmt.Errorf("--executor: the role %s is also in --roles, and both would consume its steps: remove it there", c.Executor)
	}
	switch c.Sync {
	case "", "always", "interval":
	default:
		return fmt.Errorf("--sync: %q: must be always or interval", c.Sync)
	}
	if c.Takeover != 0 && c.NATS != "" {
		return errors.New("--takeover: not supported with --nats; set it with `harness provision`")
	}
	if c.Sync != "" && c.NATS != "" {
		return errors.New("--sync: not supported with --nats; set sync_interval in that server's configuration")
	}
	dir, err := filepath.Abs(c.Data)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	c.Data = dir
	if err := c.completeScripts(); err != nil {
		return err
	}
	for _, target := range c.AllowTargets {
		if err := remote.Check(target); err != nil {
			return fmt.Errorf("--allow-target: %w", err)
		}
	}
	if c.KeyFile != "" {
		if c.KeyFile, err = filepath.Abs(c.KeyFile); err != nil {
			return fmt.Errorf("--key-file: %w", err)
		}
	}
	return nil
}

// completeScripts makes the folder of scripted models absolute.
func (c *Config) completeScripts() (err error) {
	if c.Scripts == "" {
		return nil
	}
	if c.Scripts, err = filepath.Abs(c.Scripts); err != nil {
		return fmt.Errorf("--scripts: %w", err)
	}
	info, err := os.Stat(c.Scripts)
	switch {
	case err != nil:
		return fmt.Errorf("--scripts: %w", err)
	case !info.IsDir():
		return fmt.Errorf("--scripts: %s: expected a folder", c.Scripts)
	}
	return nil
}
