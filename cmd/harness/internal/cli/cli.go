package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
)

// cli is the command line. A flag that is not set is read from the environment: HARNESS_
// and its name, such as HARNESS_MAX_TURNS.
type cli struct {
	LogLevel string `enum:"debug,info,warn,error" default:"warn" help:"Level of the log on stderr: debug, info, warn or error."`

	Run       runCmd       `cmd:"" help:"Start a run and follow it."`
	Serve     serveCmd     `cmd:"" help:"Serve roles of the mesh."`
	Daemon    daemonCmd    `cmd:"" help:"Show, stop or restart the background process of this user, or print its log."`
	Provision provisionCmd `cmd:"" help:"Create the streams and consumers on a NATS server."`
	Doctor    doctorCmd    `cmd:"" help:"Examine this machine: keys, model, data, disk; or a mesh: its processes, and what is missing."`
	Watch     watchCmd     `cmd:"" help:"Follow a run from its start, or from a version."`
	Show      showCmd      `cmd:"" help:"Show the status of a run."`
	List      listCmd      `cmd:"" help:"List runs, newest first."`
	Last      lastCmd      `cmd:"" help:"Print the id of the newest run."`
	Send      sendCmd      `cmd:"" help:"Send a message to a run."`
	Answer    answerCmd    `cmd:"" help:"Answer a question, or a call of a tool that the client runs."`
	Approve   approveCmd   `cmd:"" help:"Approve or deny a tool call."`
	Interrupt interruptCmd `cmd:"" help:"Stop what a run is doing and park it."`
	Resume    resumeCmd    `cmd:"" help:"Resume a parked or cancelled run and follow it."`
	Cancel    cancelCmd    `cmd:"" help:"Cancel a run."`
	Feedback  feedbackCmd  `cmd:"" help:"Give feedback on the result of a run that has ended."`
	Delete    deleteCmd    `cmd:"" help:"Delete a parked or ended run with all its stored data."`
	Prompt    promptCmd    `cmd:"" help:"List and replace the prompts with which work is judged."`
	Profile   profileCmd   `cmd:"" help:"Show or forget what is known of the work in a workspace."`
	MCP       mcpCmd       `cmd:"" name:"mcp" help:"List and pin the tools of MCP servers, or serve runs to other programs over MCP."`
	Agent     agentCmd     `cmd:"" help:"Create and check agent files, and print their schemas."`
	Demo      demoCmd      `cmd:"" help:"Run a scripted agent that fixes a small program; needs no model."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
	Help      helpCmd      `cmd:"" help:"Print the help of a verb, or the list of verbs."`

	Completion completionCmd `cmd:"" help:"Print the script that completes command lines in bash, zsh or fish."`
	Complete   completeCmd   `cmd:"" hidden:"" help:"Complete a command line, for the scripts of completion."`
}

// command is a verb. An error is printed as one line and makes the exit code 1
// unless the code says otherwise.
type command interface {
	run(ctx context.Context, a *app) (code int, err error)
}

// stdio is the input and output of a process.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	// signals are the requests to stop.
	signals <-chan os.Signal
	// environ are all variables of the environment, as NAME=VALUE.
	environ []string
	// program is the path of this program, which runs again as background process; empty: it
	// does not.
	program string
	// version is that of this program.
	version string
}

// app is one run of the program.
type app struct {
	stdio
	env func(string) string
	log *slog.Logger
	// level is that of log.
	level slog.Level
	// logs is where log goes.
	logs *outlet
	// given are the flags of the command line, without those of the environment.
	given map[string]bool
	// inherited are the flags of the environment.
	inherited map[string]bool
	// catalogue is the file that extends the model catalogue; empty: none.
	catalogue string
	// parser is the definition of the command line.
	parser *kong.Kong
}

// exitRequest carries the exit code that kong requests, after --help.
type exitRequest int

// errSignal is the cause of a context that a signal cancelled.
var errSignal = errors.New("interrupted")

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
	return run(os.Args[1:], stdio{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, signals: signals, environ: os.Environ(), program: program, version: version,
	}, os.Getenv)
}

// run executes the program and returns its exit code.
func run(args []string, std stdio, env func(string) string) (code int) {
	a := &app{stdio: std, env: env, given: map[string]bool{}, inherited: map[string]bool{}, logs: &outlet{w: std.err}}
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
		kong.Writers(std.out, std.err),
		kong.Exit(func(code int) { panic(exitRequest(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
			if value := env(envName(flag.Name)); value != "" && flag.Name != "help" {
				a.inherited[flag.Name] = true
				return value, nil
			}
			return nil, nil
		})),
	)
	if err != nil {
		return fail(a, exit.Error, fmt.Errorf("invalid command line definition: %w", err))
	}
	a.parser = parser
	warnUnknown(a, parser.Model)
	parsed, err := parser.Parse(stateValue(versionVerb(args)))
	if err != nil {
		return fail(a, exit.Error, err)
	}
	for _, path := range parsed.Path {
		if path.Flag != nil && !path.Resolved {
			a.given[path.Flag.Name] = true
			delete(a.inherited, path.Flag.Name)
		}
	}
	a.level = level(c.LogLevel)
	a.log = slog.New(telemetry.Handler(slog.NewTextHandler(a.logs, &slog.HandlerOptions{Level: level(c.LogLevel)})))
	verb, ok := parsed.Selected().Target.Addr().Interface().(command)
	if !ok {
		return fail(a, exit.Error, fmt.Errorf("%s does nothing yet", parsed.Selected().Name))
	}
	code, err = verb.run(context.Background(), a)
	if err != nil {
		return fail(a, code, err)
	}
	return code
}

// fail prints an error as one line.
func fail(a *app, code int, err error) int {
	fmt.Fprintln(a.err, "harness: "+oneLine(whence(a, message(err))))
	if code == exit.Done {
		return exit.Error
	}
	return code
}

// message returns the text of an error for people: of a gRPC error its message.
func message(err error) string {
	var carrier interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &carrier) {
		return err.Error()
	}
	st := carrier.GRPCStatus()
	text := strings.ReplaceAll(err.Error(), fmt.Sprintf("rpc error: code = %s desc = ", st.Code()), "")
	switch st.Code() {
	case codes.Unavailable:
		if fault.ReasonOf(err) != "" {
			return text // it answered and reports what it cannot reach
		}
		if why, refused := tlsfiles.Explain(text); refused {
			return "--server: " + why
		}
		return "the gateway cannot be reached; is harness serve running? " + text
	case codes.Unauthenticated:
		return text + " (--token-file)"
	case codes.Unimplemented:
		if strings.Contains(text, "unknown service") {
			return "this process does not serve a gateway: name one with --server, or its data directory with --data"
		}
		return "the gateway does not support this request; it may be older than this program: " + text
	}
	return text
}

// oneLine returns a text, of which a server may have written a part, in a form that is safe
// for a terminal.
func oneLine(text string) string { return content.OneLine(text) }

// note writes a remark to stderr.
func (a *app) printNote(format string, args ...any) {
	fmt.Fprintln(a.err, oneLine("harness: "+fmt.Sprintf(format, args...)))
}

func envName(flag string) string {
	return "HARNESS_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func level(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name)) // kong has checked the name
	return l
}

// conflict returns an error if two mutually exclusive flags are set.
func (a *app) conflict(one, other string) error {
	if a.given[one] && a.given[other] {
		return fmt.Errorf("--%s and --%s are mutually exclusive: use one of them", one, other)
	}
	return nil
}

// cancelOnSignal returns a context that the next signal cancels, until stop is called.
func (a *app) cancelOnSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-a.signals:
			cancel(errSignal)
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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
