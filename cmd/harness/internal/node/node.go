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
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

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

	local   *servers // gateway and roles, for this machine
	front   *front   // the same over TCP; nil until the first role is registered
	keys    doorKeys
	meshKey *meshKey
	// watchedKey is the gateway's key in a file; nil without one.
	watchedKey atomic.Pointer[localkey.File]
	older      bool     // the data directory has been used before
	unnote     []func() // remove the notes of the key
	sandbox    *foundSandbox
	commands   *toolhostserver.Server // the tool host of this process; nil without one
	handing    atomic.Bool            // Pause was followed by HandOver
	gateway    harnessv1.GatewayServiceClient
	addresses  map[string]string

	pending  []func()       // start to accept
	unserved []net.Listener // until then, to be closed by hand
	mesh     *mesh
	probe    *probe
	observed observation

	interrupted []*harnessv1.Run // at the start

	stopWork  context.CancelCauseFunc
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
		done: make(chan struct{}), workEnded: make(chan struct{}), stopWork: func(error) {},
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
	n.warnOfUnsealedInputs(ctx)
	if n.lock == nil {
		return nil
	}
	return writeHolder(n.cfg.Data, n.local.socket, n.keys.socketFile(), n.cfg.Program, n.cfg.Background != nil)
}

// warnOfOpenBus warns of a server that requires no credentials. A process that does not
// start reports its error only.
func (n *Node) warnOfOpenBus(ctx context.Context) {
	if n.cfg.NATS != "" && n.log.AcceptsAnyClient(ctx, n.bus) {
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
		var err error
		if cfg.Seal, err = n.openInputSeal(); err != nil {
			return err
		}
		if n.cfg.Executor != "" {
			if err := jetstream.AddExecutor(ctx, cfg, n.cfg.Executor); err != nil {
				return err
			}
		}
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
// continue for Config.Drain, or as HandOver set it, returns the rest to the bus, kills running tools, and
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
		n.stopWork(n.drain())
		if n.work != nil {
			select {
			case <-n.workEnded:
			case <-ctx.Done():
				err = fmt.Errorf("stop: executors are still at work: %w", ctx.Err())
			}
		}
		if n.local != nil && err == nil {
			n.local.finish()
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
