// Package serve is the verbs for the processes of a mesh: serve, provision and daemon. Flags that
// contradict each other, and addresses that would be open to others, are refused before anything
// is started or created.
package serve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/natsflags"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func (Cmd) Help() string {
	return "Example:\n\n  harness serve --nats nats://bus:4222 --roles turn --listen 127.0.0.1:0"
}

// defaultDrain is how long work may continue after the signal.
const defaultDrain = 10 * time.Second

// Cmd serves roles until a signal.
type Cmd struct {
	Roles              []string          `default:"all" placeholder:"ROLE" help:"Roles to serve: all, or a list of gateway, repair, compaction, inference, turn, stopdecision, toolhost and bridge; bridge is not in all."`
	Executor           string            `placeholder:"NAME" help:"bridge: name of the executor in workflows."`
	Target             string            `placeholder:"HOST:PORT" help:"bridge: address at which the executor serves harness.v1.ExecutorService."`
	TargetTime         *console.Duration `name:"target-timeout" placeholder:"D" help:"bridge: timeout of a call of the executor. Default: 5m."`
	Listen             string            `placeholder:"ADDR" help:"Address of this process, at which all of its roles are called. Port 0 is any free port. Default: 127.0.0.1:7447 with the gateway, else 127.0.0.1:0."`
	NATS               string            `name:"nats" placeholder:"URL" help:"NATS server. Default: an embedded one."`
	NATSWait           *console.Duration `name:"nats-wait" placeholder:"D" help:"How long to wait for NATS at the start. Default: 3s."`
	Advertise          string            `placeholder:"HOST" help:"Host at which other processes reach this one; required if --listen is 0.0.0.0 or [::]. Default: the host of --listen."`
	NATSCreds          string            `name:"nats-creds" placeholder:"FILE" help:"File with the credentials of a NATS user: JWT and key, or one line USER:PASSWORD."`
	Takeover           *console.Duration `placeholder:"D" help:"How long a worker may be dead, hung or disconnected before another one gets its step, at least 1s; for the embedded server. Default: 5s."`
	Drain              *console.Duration `placeholder:"D" help:"How long work may continue after SIGTERM; unfinished steps are redelivered. Default: 10s."`
	Concurrency        int               `placeholder:"N" help:"Steps that each executor in this process works on at the same time, at least 1. Default: 256; jobs of inference: 8."`
	Instance           string            `placeholder:"NAME" help:"Unique name of this process. Default: host, pid and a random part."`
	HostPatience       *console.Duration `placeholder:"D" help:"How long to wait for the tool host of a started call while another one answers; then the result of the call is unknown. Default: 2m."`
	CORS               []string          `name:"cors" placeholder:"ORIGIN" help:"Origin of web pages that may call the gateway over HTTP, such as https://app.example, or * for all, with --tokens; repeatable."`
	IdleTimeout        *console.Duration `name:"idle-timeout" placeholder:"D" help:"How long a connection to --listen may have no call. Default: 10m."`
	PeerConnections    int               `placeholder:"N" help:"Connections of one peer to --listen at the same time, at least 1. Default: 1024."`
	Insecure           bool              `help:"Listen on other addresses than loopback without TLS or tokens. Every client that connects can run commands here."`
	Catalogue          string            `placeholder:"FILE" help:"File with context windows and prices of models; overrides the built-in catalogue, for the gateway, the turn role and the inference role."`
	Metrics            string            `placeholder:"ADDR" help:"HTTP address of /metrics for Prometheus, /healthz and /readyz, such as 127.0.0.1:9464; serves no secrets. Default: none."`
	Data               string            `placeholder:"DIR" help:"Data directory. Default: $$XDG_DATA_HOME/harness, else ~/.local/share/harness, which processes of a mesh with --nats share."`
	Scripts            string            `placeholder:"DIR" help:"Folder of scripted models (script:FILE), for the gateway, the turn role and the inference role: runs that are started over the network can use its files, and no others. Default: none."`
	AllowTarget        []string          `placeholder:"HOST:PORT" help:"Service that runs may name in hooks, checks, context providers, tool services and summarizers (grpc) if they are started over the network with a token; repeatable. Default: none."`
	SandboxLeast       string            `enum:"off,kernel,full" default:"off" placeholder:"off|kernel|full" help:"Least level at which the tool host runs commands. A host below it is not ready."`
	TokenSandboxLeast  string            `enum:"off,kernel,full" default:"kernel" placeholder:"off|kernel|full" help:"Least level at which anything of a run runs that is started with a token of --tokens; the tool host follows the stricter of this and its own. off: commands of such runs may be confined by nothing."`
	SandboxPrivateHost []string          `placeholder:"HOST" help:"Host whose addresses are private that commands may reach if their run names it too, such as proxy.corp.example:8080; repeatable."`
	ToolService        []string          `name:"tool-service" sep:"none" placeholder:"NAME=HOST:PORT" help:"Tool service whose tools all runs of the tool host have; ,trust=hints counts what it says of their effects, ,timeout=D bounds a call; repeatable."`
	Quality            string            `enum:"always," default:"" placeholder:"always" help:"always: judge the work of all runs, whatever they ask for. Default: that of runs that ask for it."`
	Features           string            `placeholder:"FILE" help:"File with features that the runs of some namespaces, or a share of all runs, have; read at the start. Default: none."`
	Sync               string            `enum:"always,interval," default:"" placeholder:"always|interval" help:"When the embedded server flushes to disk: always (default) survives a power failure, interval is faster."`

	secureFlags
	meshFlags
	natsflags.TLS
}

func (c *Cmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if a.Given["nats"] && a.Given["sync"] || c.NATS != "" && c.Sync != "" {
		return exit.Error, errors.New("--sync: not supported with --nats; set sync_interval: always in that server's configuration")
	}
	if len(c.Roles) == 0 || len(c.Roles) == 1 && strings.TrimSpace(c.Roles[0]) == "" {
		return exit.Error, fmt.Errorf("--roles: missing role: expected all, %s", strings.Join(workflow.Roles(), ", "))
	}
	for i, role := range c.Roles {
		c.Roles[i] = strings.TrimSpace(role)
		if c.Roles[i] != workflow.AllRoles && c.Roles[i] != workflow.Bridge && !slices.Contains(workflow.Roles(), c.Roles[i]) {
			return exit.Error, fmt.Errorf("--roles: %q: expected all, %s, %s", role, strings.Join(workflow.Roles(), ", "), workflow.Bridge)
		}
	}
	if c.Takeover != nil && c.NATS != "" {
		return exit.Error, errors.New("--takeover: not supported with --nats; set it with `harness provision`")
	}
	if c.Takeover != nil && c.Takeover.D < runlog.MinTakeover {
		return exit.Error, fmt.Errorf("--takeover: %s is too short: must be at least %s, so that a worker can report five times within it", c.Takeover.D, runlog.MinTakeover)
	}
	if c.Instance != "" && !console.NameForm().MatchString(c.Instance) {
		return exit.Error, fmt.Errorf("--instance: %q: expected letters, digits, - and _, at most 64", c.Instance)
	}
	if c.Concurrency < 0 || a.Given["concurrency"] && c.Concurrency == 0 {
		return exit.Error, fmt.Errorf("--concurrency: %d: expected at least 1", c.Concurrency)
	}
	if c.PeerConnections < 0 || a.Given["peer-connections"] && c.PeerConnections == 0 {
		return exit.Error, fmt.Errorf("--peer-connections: %d: expected at least 1", c.PeerConnections)
	}
	drain := defaultDrain
	if c.Drain != nil {
		drain = c.Drain.D
	}
	if c.NATS == "" && !slices.Contains(c.Roles, workflow.AllRoles) && len(c.Roles) < len(workflow.Roles()) {
		a.Report("WARNING: without --nats the bus is embedded in this process: %s cannot work with other processes", strings.Join(c.Roles, ", "))
	}
	if err := c.checkCORS(); err != nil {
		return exit.Error, fmt.Errorf("--cors: %w", err)
	}
	if c.Listen == "" {
		c.Listen = c.defaultListen()
	}
	if err := c.checkListen(a); err != nil {
		return exit.Error, err
	}
	shared := c.Data == "" && c.NATS != ""
	if c.Data == "" {
		dir, err := backend.DefaultData(a.Env)
		if err != nil {
			return exit.Error, err
		}
		c.Data = dir
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return exit.Error, fmt.Errorf("--data: %w", err)
	}
	a.Catalogue = c.Catalogue
	models, err := a.Models()
	if err != nil {
		return exit.Error, err
	}
	cfg := node.Config{
		Data: data, SharedData: shared, NATS: c.NATS, Credentials: c.NATSCreds, Roles: c.Roles, Listen: c.Listen, Advertise: c.Advertise, Sync: c.Sync, CORS: c.CORS,
		Scripts: c.Scripts, AllowTargets: c.AllowTarget, SandboxLeast: c.SandboxLeast, TokenLeast: c.TokenSandboxLeast,
		SandboxPrivateHosts: c.SandboxPrivateHost, Secrets: []string{c.Tokens, c.TLSKey, c.InputKey},
		PeerConnections: c.PeerConnections, Drain: drain, Concurrency: c.Concurrency, Instance: c.Instance, Program: a.Version,
		Executor: c.Executor, Target: c.Target, QualityAlways: c.Quality != "",
		ModelEnv: a.Env, Catalogue: models, Metrics: c.Metrics, Logger: a.Log, Stderr: a.Err,
	}
	if cfg.ToolServices, err = runspec.ParseToolServices(c.ToolService); err != nil {
		return exit.Error, err
	}
	if c.Features != "" {
		if cfg.Features, err = agentfile.LoadFeatures(c.Features); err != nil {
			return exit.Error, fmt.Errorf("--features: %w", err)
		}
	}
	if c.TargetTime != nil {
		cfg.TargetTimeout = c.TargetTime.D
	}
	if err := c.meshFlags.configure(c, a, &cfg); err != nil {
		return exit.Error, err
	}
	if err := c.secure(a, &cfg); err != nil {
		return exit.Error, err
	}
	if c.NATSWait != nil {
		cfg.NATSWait = c.NATSWait.D
	}
	if c.Takeover != nil {
		cfg.Takeover = c.Takeover.D
	}
	if c.IdleTimeout != nil {
		cfg.IdleTimeout = c.IdleTimeout.D
	}
	if c.HostPatience != nil {
		cfg.HostPatience = c.HostPatience.D
	}
	starting, stop := a.CancelOnSignal(ctx)
	var n *node.Node
	if c.NATS == "" && slices.Contains(c.Roles, workflow.AllRoles) {
		n, err = backend.StartServer(starting, cfg, func(text string) { a.Report("%s", console.OneLine(text)) })
	} else {
		n, err = backend.StartNode(starting, cfg)
	}
	stop()
	if err != nil {
		if context.Cause(starting) != nil {
			return exit.Done, nil
		}
		return exit.Error, err
	}
	select {
	case <-n.Done():
		return exit.Error, fmt.Errorf("a role ended: %w", n.Err())
	case <-starting.Done(): // the signal came as the start ended
	case <-a.Signals:
	}
	ending, cancel := context.WithTimeout(ctx, drain+target.StopTime)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- n.Stop(ending) }()
	select {
	case err := <-stopped:
		if err != nil {
			return exit.Error, fmt.Errorf("the process did not stop cleanly: %w", err)
		}
		return exit.Done, nil
	case <-a.Signals:
		return exit.Error, errors.New("stopped by a second signal before shutdown was complete")
	}
}
