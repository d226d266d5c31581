package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
)

// serveCmd serves roles until a signal comes.
type serveCmd struct {
	Roles    []string      `default:"all" placeholder:"ROLE" help:"Roles to serve: all, or a list of gateway, repair, compaction, turn, stopdecision and toolhost."`
	Listen   string        `default:"127.0.0.1:7447" placeholder:"ADDR" help:"Address of the gateway; other roles alone listen on a free port."`
	NATS     string        `name:"nats" placeholder:"URL" help:"NATS server; without it one is embedded."`
	NATSWait *durationFlag `name:"nats-wait" placeholder:"D" help:"How long NATS may be out of reach at the start. Default: 3s."`
	Insecure bool          `help:"Listen beyond this machine without TLS and without a token. Whoever reaches the address can run commands here."`
	Data     string        `placeholder:"DIR" help:"Data directory. Default: $$XDG_DATA_HOME/harness, else ~/.local/share/harness."`
	Sync     string        `enum:"always,interval," default:"" placeholder:"always|interval" help:"When the embedded server flushes to disk; always (default) survives power loss, interval is faster."`
}

func (c *serveCmd) run(ctx context.Context, a *app) (int, error) {
	if a.given["nats"] && a.given["sync"] || c.NATS != "" && c.Sync != "" {
		return follow.ExitError, errors.New("--sync: with --nats it is the server's own setting (sync_interval: always in its configuration)")
	}
	for i, role := range c.Roles {
		c.Roles[i] = strings.TrimSpace(role)
		if c.Roles[i] != "all" && !slices.Contains(node.Roles, c.Roles[i]) {
			return follow.ExitError, fmt.Errorf("--roles: %q: want all, %s", role, strings.Join(node.Roles, ", "))
		}
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
	cfg := node.Config{
		Data: data, NATS: c.NATS, Roles: c.Roles, Listen: c.Listen, Sync: c.Sync,
		ModelEnv: a.env, Logger: a.log, Stderr: a.err,
	}
	if c.NATSWait != nil {
		cfg.NATSWait = c.NATSWait.d
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
	ending, cancel := context.WithTimeout(ctx, 2*stopTime)
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

// checkListen keeps an open gateway from the network unless that is asked for.
func (c *serveCmd) checkListen(a *app) error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %q: want HOST:PORT, such as 127.0.0.1:7447", c.Listen)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	if !c.Insecure {
		return fmt.Errorf("--listen: %s is open to other machines, and this gateway has neither TLS nor tokens yet: listen on 127.0.0.1 behind a proxy that authenticates, or say --insecure", c.Listen)
	}
	a.note("WARNING: %s is open to other machines without TLS and without a token: whoever reaches it can run commands here", c.Listen)
	return nil
}

// provisionCmd makes the streams and consumers on a NATS server.
type provisionCmd struct {
	NATS     string   `name:"nats" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server."`
	Executor []string `placeholder:"NAME" help:"Executor of one's own that gets a consumer too; may be given again."`
	MaxBytes int64    `placeholder:"N" help:"Bytes for the stream of records; twice as many are set aside for blobs. Default: 8 GiB."`
}

func (c *provisionCmd) run(ctx context.Context, a *app) (int, error) {
	for _, name := range c.Executor {
		if !nameForm.MatchString(name) {
			return follow.ExitError, fmt.Errorf("--executor: %q: want letters, digits, - and _, at most 64", name)
		}
	}
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := backend.Provision(ctx, c.NATS, c.Executor, c.MaxBytes); err != nil {
		return follow.ExitError, fmt.Errorf("--nats: %s: %w", c.NATS, err)
	}
	a.note("%s is provisioned", c.NATS)
	return follow.ExitDone, nil
}
