// Package node assembles roles of the mesh in this process: the bus, embedded
// or external, the executors, the tool host and the gateway, each as a gRPC
// service with health and reflection.
//
// The code path is the same wherever a role runs: executors meet only on the
// bus, and call the tool host through its gRPC interface; one in the same
// process is called without the wire (see insideToolHost).
//
// Stopping goes in the order intake, work, tools, bus; see Stop.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
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
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/bridge"
)

// Config of a node.
type Config struct {
	// Data is the data directory: the embedded server's files and the tool
	// host's ledger. Held by one process at a time.
	Data string
	// NATS is the URL of an external server; empty means an embedded one.
	NATS string
	// Credentials is a file with a NATS user's JWT and key; empty means none.
	Credentials string
	// NATSFiles are the TLS files for the external server.
	NATSFiles jetstream.TLSFiles
	// TLS is who this process is to other roles and to clients; nil means no TLS.
	// With CAs of its own, roles other than the gateway demand a certificate.
	TLS *tlsfiles.Identity
	// Tokens let callers in at the gateway's address; nil lets in everybody who
	// reaches it. The local socket takes none.
	Tokens *access.Tokens
	// CORS are the origins that browsers may call the gateway's HTTP side from.
	CORS []string
	// Probe is an address that tells of health only, in plaintext; empty means none.
	Probe string
	// NATSWait bounds the wait for an external server. Default 3 s.
	NATSWait time.Duration
	// Roles to run; all means all of them.
	Roles []string
	// Listen is the gateway's TCP address; empty means only the local socket.
	// With it, every other role listens on a free port beside it.
	Listen string
	// Executor is the name of the executor that the role bridge calls, and Target where
	// it is served, HOST:PORT. TargetTimeout bounds a call; default 5 min.
	Executor, Target string
	TargetTimeout    time.Duration
	// Advertise is the host that others reach this machine by; empty means the one
	// in Listen.
	Advertise string
	// Sync is always (default) or interval, for the embedded server.
	Sync string
	// Takeover is how long a worker may be dead, hung or cut off before another
	// has its step, for the embedded server. Default 5 s.
	Takeover time.Duration
	// Drain is how long work may go on after Stop was called. Default 0.
	Drain time.Duration
	// HostPatience is how long a tool host that has a started call may be away
	// while another one answers. Default 2 min.
	HostPatience time.Duration
	// Concurrency bounds the steps that each executor has in work at once.
	// Default 256.
	Concurrency int
	// Instance names this process among all that live; empty means made up.
	Instance string
	// Program is the version of the program.
	Program string
	// ModelEnv is where the turn worker finds providers and their keys. Default os.Getenv.
	ModelEnv func(string) string
	// Catalogue is what is known of models: for the gateway and the turn worker. Nil
	// means the embedded one.
	Catalogue *catalogue.Catalogue
	// Logger; nil discards.
	Logger *slog.Logger
	// Interrupt first interrupts every unfinished run that is not in Keep, so
	// that runs of old goals do not start working unasked.
	Interrupt bool
	// Keep are runs, as NAMESPACE/RUN.
	Keep []string
	// Metrics is the HTTP address of metrics, liveness and readiness; empty means none.
	Metrics string
	// Stderr gets a line for each role that is ready; nil means none.
	Stderr io.Writer
}

// maxMessage bounds a gRPC message: a conversation comes as one.
const maxMessage = 64 << 20

// Bounds of what clients ask of a gateway over the network: the bytes of a request, and
// the calls of one connection at once. Answers may be larger.
const (
	maxRequest = 16 << 20
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
	gateway   harnessv1.GatewayServiceClient
	addresses map[string]string

	pending  []func()       // begin to accept
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
}

// Start starts a node and returns when all of it is ready. On an error nothing
// of it is left.
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

// role is the role of a process that has one only.
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
	return nil
}

func (n *Node) start(ctx context.Context) error {
	err := n.startProbe()
	if err != nil {
		return err
	}
	if n.lock, err = hold(n.cfg.Data); err != nil {
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
	if err := n.listen(); err != nil {
		return err
	}
	if err := n.startRoles(ctx); err != nil {
		return err
	}
	select {
	case <-n.done: // a role failed at once
		return fmt.Errorf("a role ended: %w", n.Err())
	default:
	}
	return writeHolder(n.cfg.Data, n.local.socket)
}

// gatewayCache bounds the records that a gateway keeps, in encoded bytes.
const gatewayCache = 4 << 20

// embeddedBytes bounds the embedded streams; the disk is the real bound.
const embeddedBytes = 1 << 40

func (n *Node) openLog(ctx context.Context) error {
	cfg := jetstream.Config{Name: "harness " + n.instance, Wait: n.cfg.NATSWait, Logger: n.cfg.Logger}
	if len(n.cfg.Roles) == 1 && n.cfg.Roles[0] == workflow.Gateway {
		// It reads what somebody asks for, once; a page of runs must not stay in memory.
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

// Client calls the gateway; it is nil on a node without one.
func (n *Node) Client() harnessv1.GatewayServiceClient { return n.gateway }

// Addr is where a role listens; empty when it is not here.
func (n *Node) Addr(role string) string { return n.addresses[role] }

// Done is closed when the node has ended, by Stop or because a role failed.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node ended by itself; nil after Stop.
func (n *Node) Err() error {
	select {
	case <-n.workEnded:
		return n.workErr
	default:
		return nil
	}
}

// stopTimeout bounds a stop whose caller set no bound.
const stopTimeout = 10 * time.Second

// Stop ends the node: it says that it is leaving, takes nothing in any more,
// lets work come to its end for Config.Drain, puts the rest back, kills what
// tools still run, and closes the bus. Everything that is not finished is in the
// log.
func (n *Node) Stop(ctx context.Context) error {
	var err error
	n.stopOnce.Do(func() {
		defer close(n.done)
		select {
		case <-n.workEnded: // a role failed: nothing will come to rest
		default:
			if n.gateway != nil && n.working.Load() {
				n.settleOthers(ctx)
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

// Provision makes the streams and consumers of an external server.
func Provision(ctx context.Context, bus jetstream.Config, layout jetstream.Layout) error {
	bus.Name = "harness provision"
	return jetstream.Provision(ctx, bus, layout)
}
