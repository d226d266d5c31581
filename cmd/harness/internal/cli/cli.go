// Package cli is the command line of the program: its verbs and flags, the environment as flags, the
// exit code, help and completion. It is the only package that knows all verbs.
package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/admin"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/doctor"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/mcp"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/run"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/serve"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/show"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/steer"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/verb/trust"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// cli is the command line. A flag that is not set is read from the environment: HARNESS_
// and its name, such as HARNESS_MAX_TURNS.
type cli struct {
	LogLevel string `enum:"debug,info,warn,error" default:"warn" help:"Level of the log on stderr: debug, info, warn or error."`

	Run       run.Cmd            `cmd:"" help:"Start a run and follow it."`
	Serve     serve.Cmd          `cmd:"" help:"Serve roles of the mesh."`
	Daemon    serve.DaemonCmd    `cmd:"" help:"Show, stop or restart the background process of this user, or print its log."`
	Provision serve.ProvisionCmd `cmd:"" help:"Create the streams and consumers on a NATS server."`
	Doctor    doctor.Cmd         `cmd:"" help:"Examine this machine: keys, model, data, disk; or a mesh: its processes, and what is missing."`
	Watch     show.WatchCmd      `cmd:"" help:"Follow a run from its start, or from a version."`
	Show      show.Cmd           `cmd:"" help:"Show the status of a run."`
	List      show.ListCmd       `cmd:"" help:"List runs, newest first."`
	Last      show.LastCmd       `cmd:"" help:"Print the id of the newest run."`
	Send      steer.SendCmd      `cmd:"" help:"Send a message to a run."`
	Answer    steer.AnswerCmd    `cmd:"" help:"Answer a question, or a call of a tool that the client runs."`
	Approve   steer.ApproveCmd   `cmd:"" help:"Approve or deny a tool call."`
	Interrupt steer.InterruptCmd `cmd:"" help:"Stop what a run is doing and park it."`
	Resume    run.ResumeCmd      `cmd:"" help:"Resume a parked or cancelled run and follow it."`
	Cancel    steer.CancelCmd    `cmd:"" help:"Cancel a run."`
	Feedback  steer.FeedbackCmd  `cmd:"" help:"Give feedback on the result of a run that has ended."`
	Delete    admin.DeleteCmd    `cmd:"" help:"Delete a parked or ended run with all its stored data."`
	Prompt    admin.PromptCmd    `cmd:"" help:"List and replace the prompts with which work is judged."`
	Profile   admin.ProfileCmd   `cmd:"" help:"Show or forget what is known of the work in a workspace."`
	Trust     trust.Cmd          `cmd:"" help:"Accept instruction files, skills and agent files that runs have changed."`
	MCP       mcp.Cmd            `cmd:"" name:"mcp" help:"List and pin the tools of MCP servers, or serve runs to other programs over MCP."`
	Agent     admin.AgentCmd     `cmd:"" help:"Create and check agent files, and print their schemas."`
	Demo      run.DemoCmd        `cmd:"" help:"Run a scripted agent that fixes a small program; needs no model."`
	Version   admin.VersionCmd   `cmd:"" help:"Print the version."`
	Help      helpCmd            `cmd:"" help:"Print the help of a verb, or the list of verbs."`

	Completion completionCmd `cmd:"" help:"Print the script that completes command lines in bash, zsh or fish."`
	Complete   completeCmd   `cmd:"" hidden:"" help:"Complete a command line, for the scripts of completion."`
}

// command is a verb. An error is printed as one line and makes the exit code 1
// unless the code says otherwise.
type command interface {
	Run(ctx context.Context, a *console.Console) (code int, err error)
}

// exitRequest carries the exit code that kong requests, after --help.
type exitRequest int

// Main runs the program with the input and output of this process, and returns its exit code.
func Main(version string) int {
	// A closed reader makes a write fail instead of killing the process during a run.
	// Notify, not Ignore: child processes inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	program, err := os.Executable()
	if err != nil {
		program = "" // no background process then
	}
	return Run(os.Args[1:], console.Process{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: signals, Environ: os.Environ(), Program: program, Version: console.VersionOf(version),
	}, os.Getenv)
}

// Run executes the program and returns its exit code.
func Run(args []string, std console.Process, env func(string) string) (code int) {
	a := &console.Console{Process: std, Env: env, Given: map[string]bool{}, Inherited: map[string]bool{}, Logs: &console.Outlet{W: std.Err}}
	defer func() {
		if p := recover(); p != nil {
			wish, ok := p.(exitRequest)
			if !ok {
				panic(p)
			}
			code = int(wish)
		}
	}()
	var c cli
	parser, err := kong.New(&c,
		kong.Name("harness"),
		kong.Description("A control plane that makes a chat model a reliable long-running agent.\n\nEvery flag can be set in the environment as HARNESS_ and its name, such as HARNESS_MAX_TURNS=20. harness --version prints the version."),
		kong.Writers(std.Out, std.Err),
		kong.Exit(func(code int) { panic(exitRequest(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
			if value := env(console.EnvName(flag.Name)); value != "" && flag.Name != "help" {
				a.Inherited[flag.Name] = true
				return value, nil
			}
			return nil, nil
		})),
	)
	if err != nil {
		return fail(a, exit.Error, fmt.Errorf("invalid command line definition: %w", err))
	}
	a.Parser = parser
	warnUnknown(a, parser.Model)
	if err := unknownVerb(parser.Model, versionVerb(args)); err != nil {
		return fail(a, exit.Error, err)
	}
	parsed, err := parser.Parse(stateValue(versionVerb(args)))
	if err != nil {
		return fail(a, exit.Error, parseError(err))
	}
	for _, path := range parsed.Path {
		if path.Flag != nil && !path.Resolved {
			a.Given[path.Flag.Name] = true
			delete(a.Inherited, path.Flag.Name)
		}
	}
	a.Level = level(c.LogLevel)
	a.Log = slog.New(telemetry.Handler(slog.NewTextHandler(a.Logs, &slog.HandlerOptions{Level: level(c.LogLevel)})))
	verb, ok := parsed.Selected().Target.Addr().Interface().(command)
	if !ok {
		return fail(a, exit.Error, fmt.Errorf("%s does nothing yet", parsed.Selected().Name))
	}
	code, err = verb.Run(context.Background(), a)
	if err != nil {
		return fail(a, code, err)
	}
	return code
}

// fail prints an error as one line.
func fail(a *console.Console, code int, err error) int {
	fmt.Fprintln(a.Err, "harness: "+console.OneLine(whence(a, a.Message(err))))
	if code == exit.Done {
		return exit.Error
	}
	return code
}

func level(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name)) // kong has checked the name
	return l
}

// versionVerb replaces --version before all verbs by the verb. It is no flag of the program
// because verbs have flags of that name.
func versionVerb(args []string) []string {
	if len(args) > 0 && args[0] == "--version" {
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// stateValue allows --state without a version.
func stateValue(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if arg == "--state" && (i+1 == len(args) || strings.Trim(args[i+1], "0123456789") != "" || args[i+1] == "") {
			arg = "--state=0"
		}
		out = append(out, arg)
	}
	return out
}
