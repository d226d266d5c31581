package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

var gatewayRole = &roleSpec{name: workflow.Gateway, open: openGateway}

func openGateway(n *Node, d *dependencies) (*service, error) {
	quality, err := n.qualityConfig()
	if err != nil {
		return nil, err
	}
	least, err := sandbox.Parse(cmp.Or(n.cfg.TokenLeast, sandbox.Name(sandbox.Kernel)))
	if err != nil {
		return nil, fmt.Errorf("--token-sandbox-least: %w", err)
	}
	gateway := gatewayserver.New(gatewayserver.Config{
		Log: n.runs(), Logger: n.cfg.Logger, Instance: "gateway-" + n.instance, Window: n.ownWindow, Catalogue: n.cfg.Catalogue, Tracer: n.telemetry.Tracer(),
		Stalled: n.log.Writable,
		Workspaces: func(ctx context.Context, r *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
			return d.toolHost.DescribeWorkspace(ctx, r)
		},
		Effort: func(model string, effort harnessv1.Effort) error {
			return provider.CheckEffort(n.cfg.Catalogue, model, effort)
		},
		Quality:    quality,
		TokenLeast: least,
		Profiles:   d.profiles,
		Features:   n.cfg.Features,
		Model:      n.checkModel,
		Priced:     func(model string) bool { return provider.Priced(n.cfg.Catalogue, model) },
		SignIns:    d.toolHost,
		ToolHosts:  n.signInHosts(),
		Tools:      func(ctx context.Context) ([]*harnessv1.ToolSpec, error) { return hostTools(ctx, d.toolHost) },
		Services: func(ctx context.Context) ([]*harnessv1.McpServer, error) {
			r, err := d.toolHost.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
			return r.GetServices(), err
		},
		Hooks: func(ctx context.Context, hooks []*harnessv1.Hook) error { return n.reachHooks(ctx, d.hooks, hooks) },
	})
	if err := n.watchMesh(gateway); err != nil {
		return nil, err
	}
	n.gateway = harnessv1.NewGatewayServiceClient(n.local.conn)
	return &service{
		register: func(r grpc.ServiceRegistrar) { harnessv1.RegisterGatewayServiceServer(r, gateway) },
		ready:    func(context.Context) error { return gateway.Ready() },
		serving: func(ctx context.Context) error {
			gateway.Start(context.WithoutCancel(ctx))
			// Closed before the door, which waits for the gateway's streams.
			n.closers = append(n.closers, func(context.Context) error {
				gateway.Close()
				return nil
			})
			if err := awaitReady(ctx, gateway); err != nil {
				return err
			}
			if n.cfg.Interrupt {
				return n.interruptOthers(ctx)
			}
			return nil
		},
	}, nil
}

// checkModel returns an error if runs are known to be unable to use a model: the turn worker is
// in this process and cannot open it.
func (n *Node) checkModel(ref string) error {
	if !n.serves(workflow.Turn) || n.mesh.shared() || n.cfg.Background != nil { // its clients check with their variables
		return nil
	}
	_, _, err := provider.OpenFrom(n.cfg.Catalogue, ref, n.cfg.ModelEnv, n.scripts())
	return err
}

func hostTools(ctx context.Context, host harnessv1.ToolHostServiceClient) ([]*harnessv1.ToolSpec, error) {
	r, err := host.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
	return r.GetTools(), err
}

// reachHooks tries to reach the services of hooks. One that cannot be reached is an
// error if the hook fails closed, else a warning in the log.
func (n *Node) reachHooks(ctx context.Context, caller *hookcaller.Caller, hooks []*harnessv1.Hook) error {
	warnings, err := caller.Reach(ctx, hooks)
	for _, w := range warnings {
		n.cfg.Logger.Warn("hook", "warning", w)
	}
	return fault.In("spec.agent", err)
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
			return fmt.Errorf("the list of runs could not be read within %s, so the stored log may be damaged (HARNESS_LOG_LEVEL=debug shows more): %w", readyWait, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// interruptWait bounds the wait for interrupted runs to park: the step of a dead worker
// is delivered again after AckWait, once or, if the server has lost its record of the
// delivery, twice.
const interruptWait = 3 * runlog.DefaultTakeover

// awaitInterrupted waits until the runs that were interrupted at the start are parked, so
// that a short-lived process does not leave them running.
func (n *Node) awaitInterrupted(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, interruptWait)
	defer cancel()
	for _, run := range n.interrupted {
		stream, err := n.gateway.WatchRun(ctx, &harnessv1.WatchRunRequest{
			Namespace: run.GetNamespace(), RunId: run.GetRunId(), Until: harnessv1.WatchUntil_WATCH_UNTIL_REST,
			AfterVersion: run.GetVersion(), NoDeltas: true, Tree: proto.Bool(false),
		})
		for err == nil {
			_, err = stream.Recv()
		}
	}
}

// ProcessEnded is why a run is interrupted whose process is gone.
const ProcessEnded = "The process that worked on it ended; resume it to continue."

// interruptOthers leaves an interrupt in the inbox of every running run that is not in
// Config.Keep, before the executors start.
func (n *Node) interruptOthers(ctx context.Context) error {
	request := &harnessv1.ListRunsRequest{
		Namespace: "*", Statuses: []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_RUNNING}, PageSize: 1000, All: true,
	}
	for {
		page, err := n.gateway.ListRuns(ctx, request)
		if err != nil {
			return fmt.Errorf("list unfinished runs: %w", err)
		}
		for _, run := range page.GetRuns() {
			root := cmp.Or(run.GetRootRunId(), run.GetRunId()) // a tree continues as one
			if slices.Contains(n.cfg.Keep, run.GetNamespace()+"/"+root) {
				continue
			}
			_, err := n.gateway.InterruptRun(ctx, &harnessv1.InterruptRunRequest{
				Namespace: run.GetNamespace(), RunId: run.GetRunId(),
				Reason: ProcessEnded,
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

// signInHosts returns what lists the tool hosts of the mesh; nil if this process is all of it.
func (n *Node) signInHosts() func(context.Context) ([]*harnessv1.SignInHost, error) {
	if !n.mesh.shared() {
		return nil
	}
	return func(ctx context.Context) (hosts []*harnessv1.SignInHost, err error) {
		all, err := n.log.Presences(ctx)
		for _, p := range all {
			if p.GetRole() == workflow.ToolHost && p.GetLedgerId() != "" {
				hosts = append(hosts, &harnessv1.SignInHost{LedgerId: p.GetLedgerId(), Instance: p.GetInstance()})
			}
		}
		return hosts, err
	}
}
