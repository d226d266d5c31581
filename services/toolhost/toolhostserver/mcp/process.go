package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
)

// run runs the process of a server, confined as the commands of its run are.
func (s *Servers) run(ctx context.Context, p mcpclient.Process) error {
	defer func() { _ = p.Input.Close() }()
	dir := p.Run.Workspace
	if dir == "" {
		dir = filepath.Join(s.config.Dir, "servers", "empty")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	w, err := s.config.Open(dir)
	if err != nil {
		return fmt.Errorf("the workspace cannot be used: %s", disk.Reason(err))
	}
	defer w.Close()
	cfg := proto.CloneOf(p.Run.Sandbox)
	if cfg == nil {
		cfg = &harnessv1.SandboxConfig{}
	}
	if p.Server.GetNetwork() != nil {
		cfg.Network = p.Server.GetNetwork()
	}
	if program, err := exec.LookPath(p.Server.GetCommand()); err == nil && p.Run.Local && filepath.IsAbs(program) {
		if program, err = filepath.EvalSymlinks(program); err == nil {
			cfg.Read = append(cfg.Read, program) // a local person has named it
		}
	}
	_, support := s.config.Commands.Find(ctx)
	level, err := sandbox.Choose(support, cfg)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be confined: %w", err)
	case level == sandbox.Off && !p.Run.Local:
		return errors.New("it would not be confined, and no local person has named it: use a tool host with a sandbox")
	case level == sandbox.Off:
		p.Notice("its process is not confined: the sandbox is off")
	}
	if p.Run.Workspace != "" {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		defer stop(nil)
		watched, err := s.watch(w.Dir, p.Run.Key, guard.ReachOf(level, cfg), places.Restores(cfg), func() { stop(guard.ErrStopped) })
		if err != nil {
			return fmt.Errorf("what git runs programs by cannot be stored: %s", disk.Reason(err))
		}
		defer func() {
			if text := s.alive.end(watched); text != "" {
				p.Notice(text)
				s.config.Logger.Warn("the process of a server changed what programs of the user run by", "server", p.Server.GetName(), "workspace", w.Dir, "changes", text)
			}
		}()
	}
	request := command.Request{Run: p.Run.Key, Workspace: w.Dir, Folder: w.Folder(), Confinement: &harnessv1.Confinement{Level: level, Config: cfg}}
	exit, err := s.config.Commands.Run(ctx, request, process.Command{
		Line: p.Line, Stdin: p.Input, Output: p.Output, Errors: p.Errors, Environ: p.Environ,
	})
	switch {
	case errors.Is(context.Cause(ctx), guard.ErrStopped):
		return fmt.Errorf("it was stopped: %w", guard.ErrStopped)
	case err != nil:
		return err
	case exit.Unconfined:
		return fmt.Errorf("it cannot be confined: %s", exit.Error)
	case exit.Error != "":
		return errors.New(exit.Error)
	case exit.Code == codeNotFound:
		return notFound(p)
	}
	return nil
}

// codeNotFound is the exit code of a shell that did not find a program.
const codeNotFound = 127

// notFound returns why a shell did not find the program of a server. Only a local person learns whether a path exists
// outside of the sandbox.
func notFound(p mcpclient.Process) error {
	program := p.Server.GetCommand()
	if !filepath.IsAbs(program) {
		return fmt.Errorf("the program %s was not found: install it, or write its path", program)
	}
	if _, err := os.Stat(program); err == nil && p.Run.Local {
		return fmt.Errorf("the program %s exists, but its sandbox shows neither it nor the interpreter that its first line names: add their folders to sandbox.read", program)
	}
	return fmt.Errorf("the program %s was not found in the sandbox of its run: install it, or add its folder to sandbox.read", program)
}
