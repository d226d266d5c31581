// Package node assembles roles of the mesh in this process: the bus, embedded or
// external, the executors, the tool host and the gateway, each as a gRPC service with
// health and reflection.
//
// The code path is the same wherever a role runs: executors communicate only over the
// bus and call the tool host through its gRPC interface. A tool host in the same process
// is called without a connection (see insideToolHost). Each role is one value, see
// roleSpec.
//
// A node stops its intake first, then work, tools and the bus; see Stop.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
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
	// SandboxLeast is the least level at which the tool host runs commands: off (default),
	// kernel or full.
	SandboxLeast string
	// Secrets are more files that commands must not read.
	Secrets []string
	// SandboxPrivateHosts are hosts with private addresses that commands may reach if their
	// run names them too.
	SandboxPrivateHosts []string
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
	// Metrics is the HTTP address of metrics, liveness and readiness; empty means none.
	Metrics string
	// Stderr gets a line for each role that is ready; nil means none.
	Stderr io.Writer
}

// Defaults of the bounds on connections to Config.Listen.
const (
	defaultIdle            = 10 * time.Minute
	defaultPeerConnections = 1024
)

// maxMessage bounds a gRPC message: a conversation is one message.
const maxMessage = 64 << 20

// Limits on clients of a gateway over the network: the bytes of a request, and the
// concurrent calls of one connection. Responses may be larger.
const (
	maxRequest = 32 << 20
	maxStreams = 1000
)

// Node is a running set of roles.
type Node struct {
	cfg      Config
	lock     *flock.Flock
	embedded *jetstream.EmbeddedServer
	log      *jetstream.Log
	instance string

	local     *servers // gateway and roles, for this machine
	front     *front   // the same over TCP; nil until the first role is registered
	keys      doorKeys
	meshKey   *meshKey
	older     bool     // the data directory has been used before
	unnote    []func() // remove the notes of the key
	sandbox   *foundSandbox
	gateway   harnessv1.GatewayServiceClient
	addresses map[string]string

	pending  []func()       // start to accept
	unserved []net.Listener // until then, to be closed by hand
	mesh     *mesh
	probe    *probe
	observed observation

	interrupted []*harnessv1.Run // at the start

	stopWork  context.CancelFunc
	work      *errgroup.Group
	closers   []func(context.Context) error // in the order of starting
	done      chan struct{}
	stopOnce  sync.Once
	workEnded chan struct{}
	workErr   error
	working   atomic.Bool

	telemetry *telemetry.Telemetry
	bus       jetstream.Config // of a server outside of this process
}

// Start starts a node and returns when all of it is ready. After an error nothing of it
// is left.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, instance: cfg.Instance, addresses: map[string]string{},
		done: make(chan struct{}), workEnded: make(chan struct{}), stopWork: func() {},
	}
	if n.instance == "" {
		n.instance = executor.NewInstance()
	}
	n.mesh = newMesh(n)
	n.meshKey = &meshKey{file: cfg.MeshKey.File, logger: cfg.Logger}
	var err error
	if n.telemetry, err = telemetry.Start(ctx, telemetry.Config{
		Role: cfg.role(), Instance: n.instance, Version: cfg.Program, Env: cfg.ModelEnv, Logger: cfg.Logger,
	}); err != nil {
		return nil, err
	}
	if err := n.start(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return nil, errors.Join(err, n.Stop(stop))
	}
	return n, nil
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

func (n *Node) start(ctx context.Context) error {
	err := n.startProbe()
	if err != nil {
		return err
	}
	_, unused := os.Stat(filepath.Join(n.cfg.Data, lockFile))
	n.older = unused == nil
	if n.lock, err = n.hold(); err != nil {
		return err
	}
	if err := n.observe(ctx); err != nil {
		return err
	}
	if err := n.openLog(ctx); err != nil {
		return err
	}
	if err := n.watchLog(); err != nil {
		return err
	}
	if err := n.startRoles(ctx); err != nil {
		return err
	}
	select {
	case <-n.done: // a role failed immediately
		return fmt.Errorf("a role ended: %w", n.Err())
	default:
	}
	n.warnOfOpenBus(ctx)
	if n.lock == nil {
		return nil
	}
	return writeHolder(n.cfg.Data, n.local.socket, n.keys.socketFile(), n.cfg.Program, n.cfg.Background != nil)
}

// warnOfOpenBus warns of a server that requires no credentials. A process that does not
// start reports its error only.
func (n *Node) warnOfOpenBus(ctx context.Context) {
	if n.cfg.NATS != "" && jetstream.AcceptsAnyClient(ctx, n.bus) {
		n.notice(fmt.Sprintf("WARNING: NATS at %s accepts clients without credentials: every process that reaches it can write to every run, approve calls and run commands. "+
			"Give the server users, and each process --nats-creds (docs/security.md)", jetstream.Redacted(n.bus.URL)))
	}
}

// gatewayCache bounds the records that a gateway caches, in encoded bytes.
const gatewayCache = 4 << 20

// embeddedBytes bounds the embedded streams; the disk is the actual limit.
const embeddedBytes = 1 << 40

func (n *Node) openLog(ctx context.Context) error {
	cfg := jetstream.Config{
		Name: "harness " + n.instance, Wait: n.cfg.NATSWait, Logger: n.cfg.Logger,
		CacheBytes: int(memoryOf(debug.SetMemoryLimit(-1)).records), //nolint:gosec // bounded
	}
	if len(n.cfg.Roles) == 1 && n.cfg.Roles[0] == workflow.Gateway {
		// A gateway reads each record once; a page of runs must not stay in memory.
		cfg.CacheBytes = gatewayCache
	}
	if n.cfg.NATS != "" {
		cfg.URL, cfg.Credentials, cfg.TLS = n.cfg.NATS, n.cfg.Credentials, n.cfg.NATSFiles
		if n.cfg.Executor != "" {
			if err := jetstream.AddExecutor(ctx, cfg, n.cfg.Executor); err != nil {
				return err
			}
		}
		var err error
		n.log, err = jetstream.Open(ctx, cfg)
		n.bus = cfg
		return err
	}
	if n.cfg.Sync == "interval" {
		n.cfg.Logger.Warn("--sync interval: what was acknowledged in the last two minutes is lost in a power failure")
		if n.cfg.Stderr != nil {
			_, _ = fmt.Fprintln(n.cfg.Stderr, "sync=interval: commits of the last two minutes do not survive a power failure")
		}
	}
	var err error
	n.embedded, err = jetstream.StartEmbedded(jetstream.EmbeddedConfig{
		Dir: filepath.Join(n.cfg.Data, natsDir), SyncAlways: n.cfg.Sync != "interval", Logger: n.cfg.Logger,
	})
	if err != nil {
		return err
	}
	layout := jetstream.Layout{MaxBytes: embeddedBytes, Takeover: n.cfg.Takeover}
	if n.cfg.Executor != "" {
		layout.Executors = []string{n.cfg.Executor}
	}
	n.log, err = n.embedded.Open(ctx, cfg, layout)
	return err
}

// Client returns a client of the gateway, nil on a node without one.
func (n *Node) Client() harnessv1.GatewayServiceClient { return n.gateway }

// Addr returns the address of a role; empty if this node does not have it.
func (n *Node) Addr(role string) string { return n.addresses[role] }

// Done is closed when the node has ended, by Stop or because a role failed.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node ended by itself; nil after Stop.
func (n *Node) Err() error {
	select {
	case <-n.workEnded:
		return n.workErr
	default:
		return nil
	}
}

// stopTimeout bounds a stop whose caller set no limit.
const stopTimeout = 10 * time.Second

// Stop stops the node: it announces that it leaves, accepts no more work, lets work
// continue for Config.Drain, returns the rest to the bus, kills running tools, and
// closes the bus. Everything unfinished is in the log.
func (n *Node) Stop(ctx context.Context) error {
	var err error
	n.stopOnce.Do(func() {
		defer close(n.done)
		select {
		case <-n.workEnded: // a role failed: no run will park
		default:
			if n.gateway != nil && n.working.Load() {
				n.awaitInterrupted(ctx)
			}
		}
		n.mesh.leave()
		n.stopWork()
		if n.work != nil {
			select {
			case <-n.workEnded:
			case <-ctx.Done():
				err = fmt.Errorf("stop: executors are still at work: %w", ctx.Err())
			}
		}
		for _, f := range n.unnote { // before another process can have the address
			f()
		}
		for _, c := range slices.Backward(n.closers) {
			err = errors.Join(err, c(ctx))
		}
		for _, l := range n.unserved {
			_ = l.Close()
		}
		if n.local != nil {
			n.local.stop()
		}
		if n.log != nil {
			n.log.Close()
		}
		if n.embedded != nil {
			n.embedded.Stop()
		}
		if n.lock != nil {
			_ = os.Remove(filepath.Join(n.cfg.Data, holderFile))
			err = errors.Join(err, n.lock.Unlock())
		}
		n.probe.stop()
		err = errors.Join(err, n.telemetry.Shutdown(context.WithoutCancel(ctx)))
	})
	return err
}

func dialOptions(more ...grpc.DialOption) []grpc.DialOption {
	return append(more, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
}

// Provision creates the streams and consumers of an external server.
func Provision(ctx context.Context, bus jetstream.Config, layout jetstream.Layout) error {
	bus.Name = "harness provision"
	return jetstream.Provision(ctx, bus, layout)
}
