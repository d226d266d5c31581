package admin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/starter"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/schemas"
)

// AgentCmd groups the commands for the files of a run.
type AgentCmd struct {
	Init   agentInitCmd   `cmd:"" help:"Write an example agent file and its contract."`
	Check  agentCheckCmd  `cmd:"" help:"Check agent files and the files that they name."`
	Schema agentSchemaCmd `cmd:"" help:"Print the JSON Schema of a kind of file, for editors."`
}

// agentInitCmd writes an example.
type agentInitCmd struct {
	Example string `enum:"coding,research,data" default:"coding" help:"Which example: coding, research or data."`
	Dir     string `arg:"" optional:"" default:"." help:"Directory to write to; created if missing."`
}

func (c *agentInitCmd) Run(_ context.Context, a *console.Console) (int, error) {
	paths, err := starter.Write(c.Example, c.Dir)
	if err != nil {
		return exit.Error, fmt.Errorf("agent init: %w", err)
	}
	for _, path := range paths {
		fmt.Fprintln(a.Out, path)
	}
	a.Report("edit them, then run: harness agent check %s %s", target.Quote(paths[0]), target.Quote(paths[1]))
	return exit.Done, nil
}

// agentCheckCmd checks files.
type agentCheckCmd struct {
	Kind  string   `enum:"auto,agent,contract,jit,hooks,modes,script,graph" default:"auto" help:"Kind of the files: agent, contract, jit, hooks, modes, script or graph. Default: recognised by their fields."`
	Reach bool     `help:"Also connect to each hook that is a gRPC service."`
	Files []string `arg:"" name:"file" help:"Files to check."`
}

func (c *agentCheckCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	code := exit.Done
	for _, path := range c.Files {
		kind, err := c.check(ctx, a, path)
		if cause := context.Cause(ctx); cause != nil {
			return exit.Error, cause
		}
		if err == nil {
			fmt.Fprintf(a.Out, "%s: OK (%s)\n", path, kind)
			continue
		}
		code = exit.Error
		var problems agentfile.Problems
		if !errors.As(err, &problems) {
			if !strings.Contains(err.Error(), path) {
				err = fmt.Errorf("%s: %w", path, err)
			}
			fmt.Fprintln(a.Out, console.OneLine(err.Error()))
			continue
		}
		for _, problem := range problems {
			fmt.Fprintln(a.Out, render.Clean(problem.Error()))
		}
	}
	return code, nil
}

func (c *agentCheckCmd) check(ctx context.Context, a *console.Console, path string) (agentfile.Kind, error) {
	kind := agentfile.Kind(c.Kind)
	if c.Kind == "auto" {
		kind = ""
	}
	kind, file, err := agentfile.Check(path, kind)
	if err == nil && file != nil {
		runspec.WarnChecks(a, file.Contract, filepath.Dir(path), ".")
	}
	if err != nil || file == nil || !c.Reach {
		return kind, err
	}
	return kind, runspec.Reach(ctx, a, file)
}

// agentSchemaCmd prints a schema.
type agentSchemaCmd struct {
	Kind string `enum:"agent,contract,jit,hooks,modes,script,graph" default:"agent" help:"Kind of the file: agent, contract, jit, hooks, modes, script or graph."`
}

func (c *agentSchemaCmd) Run(_ context.Context, a *console.Console) (int, error) {
	schema, err := schemas.Of(c.Kind)
	if err != nil {
		return exit.Error, err
	}
	_, err = a.Out.Write(schema)
	return exit.Done, err
}

func (agentInitCmd) Help() string {
	return "Example:\n\n  harness agent init --example research agents"
}

func (agentCheckCmd) Help() string {
	return "Example:\n\n  harness agent check agent.yaml contract.yaml"
}

func (agentSchemaCmd) Help() string {
	return "Example:\n\n  harness agent schema --kind hooks > hooks.json"
}
