package node

import (
	"context"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/conversationcache"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// roleSpec describes a role: what it needs and how its service is made. A new role is
// one value in a separate file and one line in roleSpecs.
type roleSpec struct {
	name string
	// needsToolHost: the role is not ready unless a tool host answers.
	needsToolHost bool
	// open makes the service, and appends the functions that close it to Node.closers.
	open func(*Node, *dependencies) (*service, error)
}

// service is the part of a role that runs in this process.
type service struct {
	register func(grpc.ServiceRegistrar)
	// run consumes the steps of an executor until ctx ends; nil if the role has none.
	run func(context.Context, executor.Config) error
	// ready returns why the role cannot work, beyond what every role needs; nil if
	// there is nothing else.
	ready func(context.Context) error
	// serving runs once the service accepts calls and before executors run; may be nil.
	serving func(context.Context) error
	// aliases are further names under which other processes find the role.
	aliases []string
	// ledger is the ledger of a tool host, else empty.
	ledger string
}

// roleSpecs lists every role in the order in which a process starts them: the tool host
// first, because others call it, and the gateway last.
var roleSpecs = []*roleSpec{
	toolHostRole, inferenceRole, repairRole, compactionRole, turnRole, stopDecisionRole, bridgeRole, gatewayRole,
}

// dependencies are what services share, each made once.
type dependencies struct {
	toolHost      *toolHosts
	remote        *remote.Pool
	hooks         *hookcaller.Caller
	conversations *conversationcache.Cache
	profiles      *profile.Profiles
}

func (n *Node) newDependencies() *dependencies {
	d := &dependencies{
		toolHost: &toolHosts{dial: func(role string) (*grpc.ClientConn, error) {
			return dialRole(role, n.locate, n.dialCredentials(workflow.ToolHost), n.meshKey.token, n.telemetry.DialOptions()...)
		}},
		remote:        &remote.Pool{Options: n.telemetry.DialOptions()},
		conversations: conversationcache.New(n.runs(), memoryOf(debug.SetMemoryLimit(-1)).conversations),
		profiles:      profile.New(profile.Config{Values: n.runs(), Logger: n.cfg.Logger}),
	}
	if n.cfg.Targets != nil {
		d.remote.TLS = n.cfg.Targets.ClientCredentials()
	}
	d.hooks = hookcaller.New(hookcaller.Config{ToolHost: d.toolHost, Log: n.runs(), Remote: d.remote, Logger: n.cfg.Logger})
	n.closers = append(n.closers, func(context.Context) error {
		d.remote.Close()
		return d.toolHost.close()
	})
	return d
}

// startRoles opens the services of this node's roles and serves them. The executors
// start last, when everything that they call is served.
func (n *Node) startRoles(ctx context.Context) error {
	shared := n.newDependencies()
	n.mesh.toolHost = shared.toolHost
	var services []*service
	for _, spec := range roleSpecs {
		if !slices.Contains(n.cfg.Roles, spec.name) {
			continue
		}
		if spec != toolHostRole { // how it confines commands decides what the listeners require
			if err := n.openLocal(ctx); err != nil {
				return err
			}
		}
		s, err := spec.open(n, shared)
		if err != nil {
			return err
		}
		if err := n.openLocal(ctx); err != nil {
			return err
		}
		if err := n.register(ctx, spec, s); err != nil {
			return err
		}
		services = append(services, s)
	}
	if err := n.mesh.meet(ctx); err != nil {
		return err
	}
	n.serveAll()
	for _, s := range services {
		if s.serving != nil {
			if err := s.serving(ctx); err != nil {
				return err
			}
		}
	}
	services = slices.DeleteFunc(services, func(s *service) bool { return s.run == nil })
	return n.mesh.join(ctx, func() { n.startWork(services) })
}

// startWork runs the executors until Stop. If one of them fails, the node ends, because
// a node without one of its roles would look healthy and do nothing.
func (n *Node) startWork(executors []*service) {
	ctx, cancel := context.WithCancelCause(context.Background())
	n.stopWork = cancel
	n.working.Store(len(executors) > 0)
	g, ctx := errgroup.WithContext(ctx)
	n.work = g
	cfg := executor.Config{
		Log: n.runs(), Instance: n.instance, Concurrency: n.cfg.Concurrency, Drain: n.cfg.Drain,
		Logger: n.cfg.Logger, Tracer: n.telemetry.Tracer(), Metrics: n.observed.metrics, Witness: n.log,
		Room: executor.NewRoom(memoryOf(debug.SetMemoryLimit(-1)).room),
	}
	for _, s := range executors {
		g.Go(func() error { return s.run(ctx, cfg) })
	}
	go func() {
		n.workErr = g.Wait()
		close(n.workEnded)
		if n.workErr != nil {
			n.cfg.Logger.Error("a role ended", "error", n.workErr)
			stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
			defer cancel()
			_ = n.Stop(stop)
		}
	}()
}

// inside makes toolHosts call a host in this process directly.
func (n *Node) inside(hosts *toolHosts, host *insideToolHost, ledger string) {
	host.unary = fault.Unary(n.cfg.Logger)
	hosts.inside, hosts.ledger = host, ledger
	n.mesh.ledger = ledger
}
