package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	n, err := StartNode(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Session{Client: n.Client(), Local: true, Working: need >= Drive, Lost: n.Done(), close: n.Stop}, nil
}

// StartNode starts a part of the mesh in this process.
func StartNode(ctx context.Context, cfg node.Config) (*node.Node, error) {
	n, err := node.Start(ctx, cfg)
	var held *node.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("%w; stop it, use its gateway (--server), or use another --data", held)
	}
	return n, err
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
