// Package tools has the tools of the tool host, each in its own file: name, description,
// schema, annotations, arguments and run.
//
// To add a tool, add a file with a type for the arguments, a function that runs a call,
// and an init that registers both with the spec. No other code names the tools of a
// host. Also add the tool to the table in docs/toolhost.md.
//
// A run function returns every mistake of the model as a Result with IsError. Its text
// depends on the effect alone: no times, process ids or random names, so that equal
// effects have equal texts and a loop is found by comparing them.
package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/background"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/webclient"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// Tool is a tool of the tool host.
type Tool = tool.Tool[Run]

// Run carries out a call whose arguments have passed the tool's schema. When ctx ends,
// it stops and returns an interrupted Result.
type Run func(ctx context.Context, env *Environment, arguments string) Result

// Environment is what a tool can use during a call.
type Environment struct {
	Workspace *workspace.Workspace
	Limits    toolhost.Limits
	// Timeout is the time limit in the request; 0 means the default.
	Timeout time.Duration
	// Sync requires that written files are on disk when the call ends.
	Sync bool
	// Command runs a command line in the workspace. All its processes are dead when it
	// returns.
	Command func(ctx context.Context, line string, output io.Writer) (command.Exit, error)
	// Start starts a background command and returns when it has begun. It is killed at the
	// limit; 0 means none.
	Start func(ctx context.Context, line string, limit time.Duration) (background.Launch, error)
	// Read reads the output of a background command.
	Read func(ctx context.Context, q background.Query) (background.Output, error)
	// Stop kills a background command, and returns how it ended when nothing of it is
	// running. If there is none, end is empty and known has those that there are.
	Stop func(ctx context.Context, id string) (end string, known []string, err error)
	// Merge merges the worktree of a run that a call of this run started.
	Merge func(ctx context.Context, run string) Result
	// Skill returns the text of a skill, or a file of it if path is not empty.
	Skill func(name, path string) Result
	// Web sends the requests of the web tools; nil for calls of other tools.
	Web *webclient.Client
}

// Result is the effect of a call.
type Result struct {
	// Text is the result for the model.
	Text    string
	IsError bool
	// Interrupted reports that the call was stopped before its end.
	Interrupted bool
	// Unknown reports that the call may have had its effect, and that how it ended is not known.
	Unknown bool
	// ExitCode of a command; nil for other tools.
	ExitCode *int32
	// Media are images and documents for the model, with their data; at most 20.
	Media []*harnessv1.Media
	// Changed has the changed paths, relative to the workspace.
	Changed []string
	// Unconfined reports that a command was not run, because it could not be confined.
	// Level is the level at which it ran.
	Unconfined bool
	Level      harnessv1.SandboxLevel
	// Background is the background command that was started.
	Background *harnessv1.BackgroundCommand
	// TimeoutHint is advice for the model, added to Text if the call ran out of time.
	TimeoutHint string
}

// Failed returns the result of a call that failed; text tells the model why.
func Failed(text string) Result { return Result{Text: text, IsError: true} }

// pathFailed returns the result of a call with a path that cannot be used.
func pathFailed(path string, err error) Result {
	return Failed(fmt.Sprintf("%s: %s.", path, disk.Reason(err)))
}

// errTimeout is the cause of a context whose time limit is over.
var errTimeout = errors.New("the call took too long")

// timeLimiter is implemented by arguments that can set the call's time limit.
type timeLimiter interface {
	// timeLimit returns the time limit; 0 means that the model did not set one.
	timeLimit() time.Duration
}

// New returns a tool whose arguments are decoded into an A. A call that runs out of time
// is stopped, and its result has a note about it.
func New[A any](spec *harnessv1.ToolSpec, run func(context.Context, *Environment, A) Result) Tool {
	return Tool{Spec: spec, Run: func(ctx context.Context, env *Environment, text string) Result {
		arguments, err := tool.Arguments[A](text)
		if err != nil {
			return Failed("The arguments cannot be read: " + err.Error())
		}
		var requested time.Duration
		if a, ok := any(arguments).(timeLimiter); ok {
			requested = a.timeLimit()
		}
		limit := env.Limits.CallTimeout(env.Timeout, requested)
		ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
		result := run(ctx, env, arguments)
		if result.Interrupted && errors.Is(context.Cause(ctx), errTimeout) {
			note := fmt.Sprintf("[Stopped: it had not ended after %v.", limit)
			if result.TimeoutHint != "" {
				note += " " + result.TimeoutHint
			}
			result.Text = toolhost.AppendLine(result.Text, note+"]")
			result.IsError = true
		}
		return result
	}}
}

// registration is a tool with its position in All.
type registration struct {
	position int
	tool     Tool
}

// registered has the tools of this package. Each file adds its own in init.
var registered []registration

// register adds a tool to All at a position.
func register(position int, t Tool) {
	registered = append(registered, registration{position, t})
}

// All returns the tools of this package in the order in which models see them: by
// position, then by name.
func All() []Tool {
	sorted := slices.Clone(registered)
	slices.SortFunc(sorted, func(a, b registration) int {
		return cmp.Or(a.position-b.position, cmp.Compare(a.tool.Spec.GetName(), b.tool.Spec.GetName()))
	})
	tools := make([]Tool, len(sorted))
	for i, r := range sorted {
		tools[i] = r.tool
	}
	return tools
}
