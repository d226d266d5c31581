package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

var toolHostRole = &roleSpec{name: workflow.ToolHost, open: openToolHost}

func openToolHost(n *Node, d *dependencies) (*service, error) {
	if err := hideMemory(); err != nil {
		n.cfg.Logger.Warn("commands can read this process's environment", "error", err)
	}
	least, err := sandbox.Parse(cmp.Or(n.cfg.SandboxLeast, sandbox.Name(sandbox.Off)))
	if err != nil {
		return nil, err
	}
	var environment func(string) []string
	if n.cfg.Environments != nil {
		environment = n.commandsOf
	}
	host, err := toolhostserver.New(toolhostserver.Config{
		Environment: environment,
		Dir:         filepath.Join(n.cfg.Data, toolsDir), Data: n.cfg.Data, Sync: n.cfg.Sync != "interval", Logger: n.cfg.Logger, SandboxLeast: least,
		SandboxPrivateHosts: n.cfg.SandboxPrivateHosts, Secrets: n.cfg.secrets(), Withheld: n.cfg.Catalogue.Variables(),
		Services: n.cfg.ToolServices, Remote: d.remote, AfterKernel: n.checkKeys,
	})
	if err != nil {
		return nil, err
	}
	box := findSandbox(host)
	n.sandbox, n.commands = box, host
	n.closers = append(n.closers, host.Close, box.wait,
		func(ctx context.Context) error { return drainTools(ctx, host, n.cfg.Drain) })
	n.inside(d.toolHost, &insideToolHost{host: host}, host.LedgerID())
	s := &service{
		register: func(r grpc.ServiceRegistrar) { harnessv1.RegisterToolHostServiceServer(r, host) },
		ledger:   host.LedgerID(),
		ready:    box.reached,
		serving:  func(ctx context.Context) error { return box.report(ctx, n) },
		aliases:  []string{workflow.ToolHost + "." + host.LedgerID()},
	}
	if place := toolhost.Place(s.ledger); place != "" {
		s.aliases = append(s.aliases, placeRole(place))
	}
	return s, nil
}

// foundSandbox is how far the tool host of this process can confine commands.
type foundSandbox struct {
	done    chan struct{}
	support *harnessv1.SandboxSupport // after done
}

// findSandbox finds out how far a tool host can confine commands, while the rest of the
// node starts.
func findSandbox(host *toolhostserver.Server) *foundSandbox {
	box := &foundSandbox{done: make(chan struct{})}
	go func() {
		defer close(box.done)
		box.support = host.Sandbox(context.Background())
	}()
	return box
}

// found returns how far commands can be confined, nil while that is being found out.
func (f *foundSandbox) found() *harnessv1.SandboxSupport {
	select {
	case <-f.done:
		return f.support
	default:
		return nil
	}
}

// report prints the level once nothing refuses the start any more, so that a refusal is
// one line.
func (f *foundSandbox) report(ctx context.Context, n *Node) error {
	select {
	case <-f.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.support.GetLevel() <= sandbox.Off {
		n.cfg.Logger.Warn("nothing confines the commands of agents: they can do what this user can do, so each asks", "reason", f.support.GetReason())
	}
	if n.cfg.Stderr != nil {
		_, _ = fmt.Fprintf(n.cfg.Stderr, "sandbox level=%s reason=%q\n", sandbox.Name(f.support.GetLevel()), f.support.GetReason())
	}
	return nil
}

// wait is a closer of the node.
func (f *foundSandbox) wait(context.Context) error {
	<-f.done
	return nil
}

// reached returns an error if the level is below the operator's least.
func (f *foundSandbox) reached(ctx context.Context) error {
	select {
	case <-f.done:
	case <-ctx.Done():
		return errors.New("how far commands can be confined is not found out yet")
	}
	if level, least := max(f.support.GetLevel(), sandbox.Off), f.support.GetLeast(); level < least {
		return fmt.Errorf("commands can be confined at %s only, below %s, the least of this host: %s", sandbox.Name(level), sandbox.Name(least), f.support.GetReason())
	}
	return nil
}

// secrets are the files and folders of this process that no command may read.
func (c *Config) secrets() []string {
	files := []string{c.KeyFile, c.MeshKey.File, c.Credentials, c.NATSFiles.Key}
	files = append(files, c.Secrets...)
	if notes, err := localkey.UserNotes(c.ModelEnv); err == nil {
		files = append(files, filepath.Dir(notes.Dir)) // with the key of the mesh
	}
	return slices.DeleteFunc(files, func(path string) bool { return path == "" })
}

// checkKeys checks the keys of this process after a command that could change their modes.
func (n *Node) checkKeys() {
	n.meshKey.check()
	if key := n.watchedKey.Load(); key != nil {
		key.Key()
	}
}

// placeRole returns the name under which the tool host of a place is found, whatever
// its ledger.
func placeRole(place string) string { return workflow.ToolHost + ".place." + place }

// drainTools waits up to drain for running calls.
func drainTools(ctx context.Context, host *toolhostserver.Server, drain time.Duration) error {
	if drain <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	_ = host.Drain(ctx) // Close kills the commands that still run
	return nil
}
