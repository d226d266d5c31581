package node

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/conversationcache"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/bridge/bridgeserver"
	"github.com/harnessmesh/harnessmesh/services/compaction/compactionserver"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
	"github.com/harnessmesh/harnessmesh/services/stopdecision/stopdecisionserver"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
)

// conversationBytes bounds the folded conversations in memory.
const conversationBytes = 256 << 20

// worker is an executor's shell.
type worker interface {
	Register(grpc.ServiceRegistrar)
	Run(context.Context, executor.Config) error
}

// startRoles makes the roles, serves them, and lets the executors work last:
// when they begin, everything that they call is there.
func (n *Node) startRoles(ctx context.Context) error {
	has := func(role string) bool { return slices.Contains(n.cfg.Roles, role) }
	var here harnessv1.ToolHostServiceServer
	if has(workflow.ToolHost) {
		if err := hideMemory(); err != nil {
			n.cfg.Logger.Warn("commands can read this process's environment", "error", err)
		}
		host, err := toolhostserver.New(toolhostserver.Config{
			Dir: filepath.Join(n.cfg.Data, toolsDir), Sync: n.cfg.Sync != "interval", Logger: n.cfg.Logger,
		})
		if err != nil {
			return err
		}
		n.closers = append(n.closers, host.Close)
		n.closers = append(n.closers, func(ctx context.Context) error { return drainTools(ctx, host, n.cfg.Drain) })
		n.mesh.ledger = host.LedgerID()
		here = host
		if err := n.register(workflow.ToolHost, func(r grpc.ServiceRegistrar) { harnessv1.RegisterToolHostServiceServer(r, host) }); err != nil {
			return err
		}
	}
	toolHost := n.toolHosts(here)
	n.mesh.toolHost = toolHost
	outside := &remote.Pool{Options: n.telemetry.DialOptions()}
	n.closers = append(n.closers, func(context.Context) error {
		outside.Close()
		return nil
	})
	hooks := hookcaller.New(hookcaller.Config{ToolHost: toolHost, Log: n.runs(), Remote: outside, Logger: n.cfg.Logger})
	conversations := conversationcache.New(n.runs(), conversationBytes)
	workers := map[string]worker{
		workflow.Repair: repairserver.New(repairserver.Config{
			Log: n.runs(), ToolHost: toolHost, Hooks: hooks, Remote: outside, Logger: n.cfg.Logger, Attended: n.attended(),
		}),
		workflow.Compaction: compactionserver.New(n.runs()),
		workflow.StopDecision: stopdecisionserver.New(stopdecisionserver.Config{
			Log: n.runs(), ToolHost: toolHost, Hooks: hooks, Remote: outside, Conversations: conversations, Logger: n.cfg.Logger,
		}),
		workflow.Turn: turnserver.New(turnserver.Config{
			Log: n.runs(), ToolHost: toolHost, Hooks: hooks, Conversations: conversations, HostPatience: n.cfg.HostPatience, Logger: n.cfg.Logger,
			Open: func(ref string) (model.Provider, string, error) {
				p, name, err := provider.OpenWith(n.cfg.Catalogue, ref, n.cfg.ModelEnv)
				if err != nil {
					return nil, "", err
				}
				return n.observed.metrics.Provider(ref, p), name, nil
			},
			Price:  func(ref string, r *model.Response) uint64 { return provider.Price(n.cfg.Catalogue, ref, r) },
			Window: n.window, Content: n.telemetry.Content(),
		}),
	}
	var working []worker
	for _, role := range workflow.Roles() {
		if w := workers[role]; w != nil && has(role) {
			if err := n.register(role, w.Register); err != nil {
				return err
			}
			working = append(working, w)
		}
	}
	if has(workflow.Bridge) {
		b, err := bridgeserver.New(bridgeserver.Config{
			Name: n.cfg.Executor, Target: n.cfg.Target, Timeout: n.cfg.TargetTimeout, Log: n.runs(), Remote: outside, Logger: n.cfg.Logger,
		})
		if err != nil {
			return err
		}
		if err := n.register(workflow.Bridge, b.Register); err != nil {
			return err
		}
		n.mesh.bridge = b.Reach
		working = append(working, b)
	}
	var gateway *gatewayserver.Server
	if has(workflow.Gateway) {
		cfg := gatewayserver.Config{Log: n.runs(), Logger: n.cfg.Logger, Instance: "gateway-" + n.instance, Window: n.ownWindow, Tracer: n.telemetry.Tracer()}
		cfg.Workspaces = func(ctx context.Context, workspace string) error {
			_, err := toolHost.DescribeWorkspace(ctx, &harnessv1.DescribeWorkspaceRequest{Workspace: workspace})
			return err
		}
		cfg.Tools = func(ctx context.Context) ([]string, error) {
			r, err := toolHost.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
			names := make([]string, 0, len(r.GetTools()))
			for _, t := range slices.Concat(r.GetTools(), workitem.Tools(), turn.HarnessTools()) {
				names = append(names, t.GetName())
			}
			return names, err
		}
		cfg.Hooks = func(ctx context.Context, subscribers []*harnessv1.Hook) error {
			warnings, err := hooks.Reach(ctx, subscribers)
			for _, w := range warnings {
				n.cfg.Logger.Warn("hook", "warning", w)
			}
			return fault.In("spec.agent", err)
		}
		gateway = gatewayserver.New(cfg)
		n.mesh.gateway = gateway.Ready
		if err := n.watchMesh(gateway); err != nil {
			return err
		}
		if err := n.register(workflow.Gateway, func(r grpc.ServiceRegistrar) { harnessv1.RegisterGatewayServiceServer(r, gateway) }); err != nil {
			return err
		}
		n.gateway = harnessv1.NewGatewayServiceClient(n.local.conn)
		gateway.Start(context.WithoutCancel(ctx))
		n.closers = append(n.closers, func(context.Context) error {
			gateway.Close()
			return nil
		})
	}
	if err := n.mesh.meet(ctx); err != nil {
		return err
	}
	n.serveAll()
	if gateway != nil {
		if err := awaitReady(ctx, gateway); err != nil {
			return err
		}
		if n.cfg.Interrupt {
			if err := n.interruptOthers(ctx); err != nil {
				return err
			}
		}
	}
	return n.mesh.join(ctx, func() { n.startWork(working) })
}

// window is the most input that a model takes, in tokens; 0 where the catalogue
// does not know it.
func (n *Node) window(ref string) uint32 {
	if e := n.cfg.Catalogue.Lookup(ref); e.Known {
		return e.Window
	}
	return 0
}

// ownWindow is the window of a model of which the embedded catalogue, which is all
// that other processes have, says another one or none; 0 for all others.
func (n *Node) ownWindow(ref string) uint32 {
	if window := n.window(ref); window != catalogue.Lookup(ref).Window {
		return window
	}
	return 0
}

// drainTools waits for the calls that run, as long as drain.
func drainTools(ctx context.Context, host *toolhostserver.Server, drain time.Duration) error {
	if drain <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	_ = host.Drain(ctx) // what is left is killed
	return nil
}

// toolHosts calls tool hosts: the one in this process, or wherever one has
// announced itself.
func (n *Node) toolHosts(here harnessv1.ToolHostServiceServer) *toolHosts {
	hosts := &toolHosts{ledger: n.mesh.ledger, dial: func(role string) (*grpc.ClientConn, error) {
		return dialRole(role, n.locate, n.dialCredentials(), n.telemetry.DialOptions()...)
	}}
	if here != nil {
		hosts.inside = &insideToolHost{host: here, unary: fault.Unary(n.cfg.Logger)}
	}
	n.closers = append(n.closers, func(context.Context) error { return hosts.close() })
	return hosts
}

// startWork runs the executors until Stop. When one of them fails by itself
// the node ends: half a mesh would only look alive.
func (n *Node) startWork(working []worker) {
	ctx, cancel := context.WithCancel(context.Background())
	n.stopWork = cancel
	n.working.Store(len(working) > 0)
	g, ctx := errgroup.WithContext(ctx)
	n.work = g
	for _, w := range working {
		g.Go(func() error {
			return w.Run(ctx, executor.Config{Log: n.runs(), Instance: n.instance, Concurrency: n.cfg.Concurrency, Drain: n.cfg.Drain, Logger: n.cfg.Logger, Tracer: n.telemetry.Tracer(), Metrics: n.observed.metrics})
		})
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

// readyWait bounds the wait for the gateway's list of runs.
const readyWait = 30 * time.Second

func awaitReady(ctx context.Context, gateway *gatewayserver.Server) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		err := gateway.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the list of runs could not be made within %s, so the stored log may be damaged (HARNESS_LOG_LEVEL=debug says more): %w", readyWait, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// settleWait bounds the wait for interrupted runs to rest: a dead worker's step
// is delivered again after AckWait, once or, when the server has forgotten that
// it was delivered, twice.
const settleWait = 3 * runlog.DefaultTakeover

// settleOthers waits until the runs that were interrupted at the start rest,
// so that a short-lived process does not leave them half-way.
func (n *Node) settleOthers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	for _, run := range n.interrupted {
		stream, err := n.gateway.WatchRun(ctx, &harnessv1.WatchRunRequest{
			Namespace: run.GetNamespace(), RunId: run.GetRunId(), Until: harnessv1.WatchUntil_WATCH_UNTIL_REST,
			AfterVersion: run.GetVersion(), NoDeltas: true,
		})
		for err == nil {
			_, err = stream.Recv()
		}
	}
}

// attended are the runs that a mesh for the sake of one of them may wake: nil for
// one that serves all.
func (n *Node) attended() *repairserver.Attended {
	if !n.cfg.Interrupt {
		return nil
	}
	a := &repairserver.Attended{Since: time.Now()}
	for _, keep := range n.cfg.Keep {
		namespace, id, _ := strings.Cut(keep, "/")
		a.Runs = append(a.Runs, runlog.Run{Namespace: namespace, ID: id})
	}
	return a
}

// interruptOthers leaves an interrupt in the inbox of every run that would go
// on working, before the executors begin.
func (n *Node) interruptOthers(ctx context.Context) error {
	request := &harnessv1.ListRunsRequest{
		Namespace: "*", Statuses: []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_RUNNING}, PageSize: 1000,
	}
	for {
		page, err := n.gateway.ListRuns(ctx, request)
		if err != nil {
			return fmt.Errorf("look for unfinished runs: %w", err)
		}
		for _, run := range page.GetRuns() {
			if slices.Contains(n.cfg.Keep, run.GetNamespace()+"/"+run.GetRunId()) {
				continue
			}
			_, err := n.gateway.InterruptRun(ctx, &harnessv1.InterruptRunRequest{
				Namespace: run.GetNamespace(), RunId: run.GetRunId(),
				Reason: "The process that worked on it ended; resume it to go on.",
			})
			if err != nil {
				return fmt.Errorf("interrupt unfinished run %s: %w", run.GetRunId(), err)
			}
			n.interrupted = append(n.interrupted, run)
		}
		if page.GetNextPageToken() == "" {
			return nil
		}
		request.PageToken = page.GetNextPageToken()
	}
}
