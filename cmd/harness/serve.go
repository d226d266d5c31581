package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
)

// defaultDrain is how long work may go on after the signal.
const defaultDrain = 10 * time.Second

// serveCmd serves roles until a signal comes.
type serveCmd struct {
	Roles        []string      `default:"all" placeholder:"ROLE" help:"Roles to serve: all, or a list of gateway, repair, compaction, turn, stopdecision, toolhost and bridge; bridge is not in all."`
	Executor     string        `placeholder:"NAME" help:"bridge: the executor, as workflows name it."`
	Target       string        `placeholder:"HOST:PORT" help:"bridge: where that executor serves harness.v1.ExecutorService."`
	TargetTime   *durationFlag `name:"target-timeout" placeholder:"D" help:"bridge: how long a call of the executor may take. Default: 5m."`
	Listen       string        `default:"127.0.0.1:7447" placeholder:"ADDR" help:"Address of the gateway, or of a role that is alone; with several roles the others take free ports. Port 0 is a free one."`
	NATS         string        `name:"nats" placeholder:"URL" help:"NATS server; without it one is embedded."`
	NATSWait     *durationFlag `name:"nats-wait" placeholder:"D" help:"How long NATS may be out of reach at the start. Default: 3s."`
	Advertise    string        `placeholder:"HOST" help:"Host by which other processes reach this one; needed where --listen is 0.0.0.0 or [::]. Default: the host of --listen."`
	NATSCreds    string        `name:"nats-creds" placeholder:"FILE" help:"Credentials file of a NATS user (JWT and key); a password goes into the URL."`
	Takeover     *durationFlag `placeholder:"D" help:"How long a worker may be dead, hung or cut off before another has its step, from 1s; for the embedded server. Default: 5s."`
	Drain        *durationFlag `placeholder:"D" help:"How long work may go on after SIGTERM; what is not finished then is put back. Default: 10s."`
	Concurrency  int           `placeholder:"N" help:"Steps that each executor here has in work at once, from 1. Default: 256."`
	Instance     string        `placeholder:"NAME" help:"Name of this process, unlike that of any other that lives. Default: host, pid and a random part."`
	HostPatience *durationFlag `placeholder:"D" help:"How long a tool host that has a started call may be away while another one answers; then the call is unknown. Default: 2m."`
	CORS         []string      `name:"cors" placeholder:"ORIGIN" help:"Origin of web pages that may call the gateway over HTTP, such as https://app.example, or * for all; may be given again."`
	Insecure     bool          `help:"Listen beyond this machine without TLS or without tokens. Whoever reaches the address can run commands here."`
	Catalogue    string        `placeholder:"FILE" help:"File with windows and prices of models, over the built-in ones; for the gateway and the turn role."`
	Metrics      string        `placeholder:"ADDR" help:"HTTP address of /metrics for Prometheus, /healthz and /readyz, such as 127.0.0.1:9464; it tells no secrets. Default: none."`
	Data         string        `placeholder:"DIR" help:"Data directory. Default: $$XDG_DATA_HOME/harness, else ~/.local/share/harness."`
	Sync         string        `enum:"always,interval," default:"" placeholder:"always|interval" help:"When the embedded server flushes to disk; always (default) survives power loss, interval is faster."`

	secureFlags
	natsTLS
}

func (c *serveCmd) run(ctx context.Context, a *app) (int, error) {
	if a.given["nats"] && a.given["sync"] || c.NATS != "" && c.Sync != "" {
		return follow.ExitError, errors.New("--sync: with --nats it is the server's own setting (sync_interval: always in its configuration)")
	}
	if len(c.Roles) == 0 || len(c.Roles) == 1 && strings.TrimSpace(c.Roles[0]) == "" {
		return follow.ExitError, fmt.Errorf("--roles: names no role: want all, %s", strings.Join(workflow.Roles(), ", "))
	}
	for i, role := range c.Roles {
		c.Roles[i] = strings.TrimSpace(role)
		if c.Roles[i] != workflow.AllRoles && c.Roles[i] != workflow.Bridge && !slices.Contains(workflow.Roles(), c.Roles[i]) {
			return follow.ExitError, fmt.Errorf("--roles: %q: want all, %s, %s", role, strings.Join(workflow.Roles(), ", "), workflow.Bridge)
		}
	}
	if c.Takeover != nil && c.NATS != "" {
		return follow.ExitError, errors.New("--takeover: with --nats it is set on the bus: say it to `harness provision`")
	}
	if c.Takeover != nil && c.Takeover.d < runlog.MinTakeover {
		return follow.ExitError, fmt.Errorf("--takeover: %s is too short: workers are to show a sign of life five times in it, so it is at least %s", c.Takeover.d, runlog.MinTakeover)
	}
	if c.Instance != "" && !nameForm.MatchString(c.Instance) {
		return follow.ExitError, fmt.Errorf("--instance: %q: want letters, digits, - and _, at most 64", c.Instance)
	}
	if c.Concurrency < 0 || a.given["concurrency"] && c.Concurrency == 0 {
		return follow.ExitError, fmt.Errorf("--concurrency: %d: want at least 1", c.Concurrency)
	}
	drain := defaultDrain
	if c.Drain != nil {
		drain = c.Drain.d
	}
	if c.NATS == "" && !slices.Contains(c.Roles, workflow.AllRoles) && len(c.Roles) < len(workflow.Roles()) {
		a.note("WARNING: without --nats the bus is inside this process, and nobody else can reach it: %s cannot work with others", strings.Join(c.Roles, ", "))
	}
	if err := gatewayhttp.CheckOrigins(c.CORS); err != nil {
		return follow.ExitError, fmt.Errorf("--cors: %w", err)
	}
	if err := c.checkListen(a); err != nil {
		return follow.ExitError, err
	}
	if c.Data == "" {
		dir, err := backend.DefaultData(a.env)
		if err != nil {
			return follow.ExitError, err
		}
		c.Data = dir
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return follow.ExitError, fmt.Errorf("--data: %w", err)
	}
	a.catalogue = c.Catalogue
	models, err := a.models()
	if err != nil {
		return follow.ExitError, err
	}
	cfg := node.Config{
		Data: data, NATS: c.NATS, Credentials: c.NATSCreds, Roles: c.Roles, Listen: c.Listen, Advertise: c.Advertise, Sync: c.Sync, CORS: c.CORS,
		Drain: drain, Concurrency: c.Concurrency, Instance: c.Instance, Program: version,
		Executor: c.Executor, Target: c.Target,
		ModelEnv: a.env, Catalogue: models, Metrics: c.Metrics, Logger: a.log, Stderr: a.err,
	}
	if c.TargetTime != nil {
		cfg.TargetTimeout = c.TargetTime.d
	}
	if err := c.secure(a, &cfg); err != nil {
		return follow.ExitError, err
	}
	if c.NATSWait != nil {
		cfg.NATSWait = c.NATSWait.d
	}
	if c.Takeover != nil {
		cfg.Takeover = c.Takeover.d
	}
	if c.HostPatience != nil {
		cfg.HostPatience = c.HostPatience.d
	}
	starting, stop := a.cancelOnSignal(ctx)
	n, err := backend.StartNode(starting, cfg)
	stop()
	if err != nil {
		if context.Cause(starting) != nil {
			return follow.ExitDone, nil
		}
		return follow.ExitError, err
	}
	select {
	case <-n.Done():
		return follow.ExitError, fmt.Errorf("a role ended: %w", n.Err())
	case <-starting.Done(): // the signal came as the start ended
	case <-a.signals:
	}
	ending, cancel := context.WithTimeout(ctx, drain+stopTime)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- n.Stop(ending) }()
	select {
	case err := <-stopped:
		if err != nil {
			return follow.ExitError, fmt.Errorf("not all of it stopped in order: %w", err)
		}
		return follow.ExitDone, nil
	case <-a.signals:
		return follow.ExitError, errors.New("left before everything had stopped")
	}
}

// provisionCmd makes the streams and consumers on a NATS server.
type provisionCmd struct {
	NATS       string        `name:"nats" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server."`
	NATSCreds  string        `name:"nats-creds" placeholder:"FILE" help:"Credentials file of a NATS user (JWT and key); a password goes into the URL."`
	NATSWait   *durationFlag `name:"nats-wait" placeholder:"D" help:"How long NATS may be out of reach. Default: 3s."`
	Executor   []string      `placeholder:"NAME" help:"Executor of one's own that gets a consumer too; may be given again."`
	Partitions int           `placeholder:"N" help:"Streams that runs are spread over; fixed for ever. Default: as it is, 1 at the install."`
	Replicas   int           `placeholder:"N" help:"Servers that keep each stream: 1, 3 or 5. Default: as it is, 1 at the install."`
	Takeover   *durationFlag `placeholder:"D" help:"How long a worker may be dead, hung or cut off before another has its step, from 1s. Workers see a change when they start again. Default: as it is, 5s at the install."`
	MaxBytes   int64         `placeholder:"N" help:"Bytes for each stream of records; twice as many are set aside for blobs. Default: as it is, 8 GiB at the install."`

	natsTLS
}

func (c *provisionCmd) run(ctx context.Context, a *app) (int, error) {
	for _, name := range c.Executor {
		if !nameForm.MatchString(name) {
			return follow.ExitError, fmt.Errorf("--executor: %q: want letters, digits, - and _, at most 64", name)
		}
	}
	if c.Partitions < 0 || c.Partitions > maxPartitions {
		return follow.ExitError, fmt.Errorf("--partitions: %d: want 1 to %d", c.Partitions, maxPartitions)
	}
	if c.Replicas != 0 && c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5 {
		return follow.ExitError, fmt.Errorf("--replicas: %d: want 1, 3 or 5", c.Replicas)
	}
	bus := jetstream.Config{URL: c.NATS, Credentials: c.NATSCreds, TLS: c.files()}
	if c.NATSWait != nil {
		bus.Wait = c.NATSWait.d
	}
	layout := jetstream.Layout{Partitions: c.Partitions, Replicas: c.Replicas, Executors: c.Executor, MaxBytes: c.MaxBytes}
	if c.Takeover != nil {
		layout.Takeover = c.Takeover.d
	}
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, bus.Wait+time.Minute)
	defer cancel()
	if err := backend.Provision(ctx, bus, layout); err != nil {
		return follow.ExitError, ofBus(err)
	}
	a.note("%s is provisioned", jetstream.Redacted(c.NATS))
	return follow.ExitDone, nil
}

// ofBus is an error of the bus with the flag that it is about.
func ofBus(err error) error {
	if strings.HasPrefix(err.Error(), "--") {
		return err
	}
	return fmt.Errorf("--nats: %w", err)
}

// maxPartitions is more than a NATS cluster can spread.
const maxPartitions = 256
