package node

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/bridge/bridgeserver"
	"github.com/harnessmesh/harnessmesh/services/compaction/compactionserver"
	"github.com/harnessmesh/harnessmesh/services/inference/inferenceserver"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
	"github.com/harnessmesh/harnessmesh/services/stopdecision/stopdecisionserver"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
)

// shell is the server of an executor.
type shell interface {
	Register(grpc.ServiceRegistrar)
	Run(context.Context, executor.Config) error
}

// serviceOf returns the service of an executor that is ready whenever its node is.
func serviceOf(s shell) *service { return &service{register: s.Register, run: s.Run} }

var repairRole = &roleSpec{
	name: workflow.Repair, needsToolHost: true,
	open: func(n *Node, d *dependencies) (*service, error) {
		return serviceOf(repairserver.New(repairserver.Config{
			Log: n.runs(), ToolHost: d.toolHost, Hooks: d.hooks, Remote: d.remote, Conversations: d.conversations, Logger: n.cfg.Logger, Scope: n.scope(),
			Jobs: n.runs(), Inference: n.mesh.inference.Available, Profiles: d.profiles,
		})), nil
	},
}

// scope returns the runs that repair may wake in a node that was started for the
// sake of one run; nil for a node that serves all runs.
func (n *Node) scope() *repairserver.Scope {
	if !n.cfg.Interrupt || n.cfg.Background != nil {
		return nil
	}
	scope := &repairserver.Scope{Since: time.Now()}
	for _, keep := range n.cfg.Keep {
		namespace, id, _ := strings.Cut(keep, "/")
		scope.Runs = append(scope.Runs, runlog.Run{Namespace: namespace, ID: id})
	}
	return scope
}

var compactionRole = &roleSpec{
	name: workflow.Compaction,
	open: func(n *Node, d *dependencies) (*service, error) {
		return serviceOf(compactionserver.New(compactionserver.Config{
			Log: n.runs(), Jobs: n.runs(), Inference: n.mesh.inference.Available, Window: n.window, Catalogue: n.cfg.Catalogue,
			Conversations: d.conversations, Logger: n.cfg.Logger,
		})), nil
	},
}

var turnRole = &roleSpec{
	name: workflow.Turn, needsToolHost: true,
	open: func(n *Node, d *dependencies) (*service, error) {
		return serviceOf(turnserver.New(turnserver.Config{
			Log: n.runs(), ToolHost: d.toolHost, Hooks: d.hooks, Conversations: d.conversations,
			HostPatience: n.cfg.HostPatience, Logger: n.cfg.Logger,
			Open: n.openModel, Window: n.window, Catalogue: n.cfg.Catalogue, Reasons: n.cfg.Catalogue.Reasons, Content: n.telemetry.Content(),
			Price: func(ref string, r *model.Response) uint64 { return provider.Price(n.cfg.Catalogue, ref, r) },
		})), nil
	},
}

var inferenceRole = &roleSpec{
	name: workflow.Inference,
	open: func(n *Node, d *dependencies) (*service, error) {
		return serviceOf(inferenceserver.New(inferenceserver.Config{
			Log: n.runs(), Open: n.openModel, Remote: d.remote, Concurrency: n.cfg.Concurrency,
			Price:   func(ref string, r *model.Response) uint64 { return provider.Price(n.cfg.Catalogue, ref, r) },
			Content: n.telemetry.Content(), Logger: n.cfg.Logger,
		})), nil
	},
}

// openModel returns the provider of a model and the model's name there.
func (n *Node) openModel(ref string) (model.Provider, string, error) {
	if n.cfg.Environments != nil && !strings.HasPrefix(ref, "script:") {
		_, name, _ := strings.Cut(ref, ":")
		return n.observed.metrics.Provider(ref, &runModels{n: n, ref: ref}), name, nil
	}
	p, name, err := provider.OpenFrom(n.cfg.Catalogue, ref, n.cfg.ModelEnv, n.scripts())
	if err != nil {
		return nil, "", err
	}
	return n.observed.metrics.Provider(ref, p), name, nil
}

// scripts are the files that this process reads scripted models from. In a mesh of several
// processes these are the files of Config.Scripts: another process started the run. In one
// process, the gateway decides what is started over the network (see limits).
func (n *Node) scripts() script.Files {
	return script.Files{Dir: n.cfg.Scripts, Only: n.mesh.shared()}
}

// limits bound what requests over the network may name.
func (n *Node) limits() access.Limits {
	return access.Limits{Scripts: script.Files{Dir: n.cfg.Scripts, Only: true}.Within, Target: remote.AllowList(n.cfg.AllowTargets).Check}
}

// window returns the input window of a model in tokens; 0 if the catalogue does not
// have it.
func (n *Node) window(ref string) uint32 {
	if e := n.cfg.Catalogue.Lookup(ref); e.Known {
		return e.Window
	}
	return 0
}

// ownWindow returns the window of a model that differs from the embedded catalogue,
// which is all that other processes have; 0 for any other model.
func (n *Node) ownWindow(ref string) uint32 {
	if window := n.window(ref); window != catalogue.Lookup(ref).Window {
		return window
	}
	return 0
}

var stopDecisionRole = &roleSpec{
	name: workflow.StopDecision,
	open: func(n *Node, d *dependencies) (*service, error) {
		return serviceOf(stopdecisionserver.New(stopdecisionserver.Config{
			Log: n.runs(), ToolHost: d.toolHost, Hooks: d.hooks, Remote: d.remote, Conversations: d.conversations, Logger: n.cfg.Logger,
			Jobs: n.runs(), Inference: n.mesh.inference.Available, Profiles: d.profiles,
		})), nil
	},
}

// bridgeRole consumes the steps of a custom executor, so that its consumer has that
// executor's name and not the role's.
var bridgeRole = &roleSpec{
	name: workflow.Bridge,
	open: func(n *Node, d *dependencies) (*service, error) {
		b, err := bridgeserver.New(bridgeserver.Config{
			Name: n.cfg.Executor, Target: n.cfg.Target, Timeout: n.cfg.TargetTimeout, Log: n.runs(), Remote: d.remote, Logger: n.cfg.Logger,
		})
		if err != nil {
			return nil, err
		}
		s := serviceOf(b)
		s.ready = b.Reach
		s.aliases = []string{workflow.Bridge + "." + n.cfg.Executor}
		return s, nil
	},
}
