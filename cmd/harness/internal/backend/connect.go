package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/daemon"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// This file is the only place where the commands use the package that assembles and
// starts the roles.

// connectLocal returns a session on a data directory: at the socket of the process that
// uses it, or in a mesh in this process.
func connectLocal(ctx context.Context, opts Options, need Need) (*Session, error) {
	if need != Own {
		if _, err := os.Stat(opts.Data); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w; use another one with --data or HARNESS_DATA", opts.Data, ErrNoData)
		}
	}
	if opts.Background != nil && (need == Own || writable(opts.Data)) {
		return joinBackground(ctx, opts)
	}
	if need != Own {
		conn, held, err := node.Attach(ctx, opts.Data)
		switch {
		case err != nil:
			return nil, err
		case held:
			return remote(conn), nil
		}
	}
	cfg := node.Config{Data: opts.Data, ModelEnv: opts.Env, Logger: opts.Logger, Keep: opts.Keep, Catalogue: opts.Catalogue}
	if need == Read || need == Store {
		cfg.Roles = []string{workflow.Gateway}
	} else {
		cfg.Interrupt = true
	}
	remove, readOnly := func() error { return nil }, false
	if need != Own && !writable(opts.Data) {
		if need != Read {
			return nil, fmt.Errorf("data directory %s cannot be written: its runs can be listed, shown and watched only", opts.Data)
		}
		var err error
		if cfg.Data, remove, err = copyOf(opts.Data); err != nil {
			return nil, err
		}
		readOnly = true
	}
	n, err := StartNode(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	stop := func(ctx context.Context) error { return errors.Join(n.Stop(ctx), remove()) }
	return &Session{Client: n.Client(), Local: true, Working: need >= Drive, ReadOnly: readOnly, Lost: n.Done(), close: stop}, nil
}

// ProcessEnded is the message of a run that is parked because its process is gone.
const ProcessEnded = node.ProcessEnded

// StartNode starts a part of the mesh in this process.
func StartNode(ctx context.Context, cfg node.Config) (*node.Node, error) {
	n, err := node.Start(ctx, cfg)
	var held *node.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("%w; stop it, use its gateway (%s), or use another --data", held, cmp.Or(held.Flags, "--server"))
	}
	return n, err
}

// StartServer starts all roles in this process. If the background process of the user has the data
// directory, the server takes over from it, and the runs at work continue in the server; note gets the
// reasons of its waits.
func StartServer(ctx context.Context, cfg node.Config, note func(string)) (*node.Node, error) {
	if daemon.Serves(cfg.Data) {
		if err := cfg.CheckAddresses(); err != nil {
			return nil, err
		}
	}
	inherited, err := daemon.Inherit(ctx, cfg.Data, cfg.Program, note)
	if err != nil {
		return nil, err
	}
	if inherited != nil {
		cfg.Environments = inherited.Environments
	}
	n, err := StartNode(ctx, cfg)
	return n, errors.Join(err, inherited.Close(err == nil))
}

// Provision creates the streams and consumers of an external NATS server.
func Provision(ctx context.Context, bus jetstream.Config, layout jetstream.Layout) error {
	return node.Provision(ctx, bus, layout)
}

// DefaultData returns the user's data directory: XDG_DATA_HOME/harness, else
// ~/.local/share/harness.
func DefaultData(env func(string) string) (string, error) {
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "harness"), nil
	}
	home := env("HOME")
	if home == "" {
		return "", errors.New("--data: HOME is not set: name a directory")
	}
	return filepath.Join(home, ".local", "share", "harness"), nil
}
