package tools

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/redraw"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
)

// RunCommand is the name of the tool that runs a command line.
const RunCommand = "run_command"

func init() {
	register(70, New(&harnessv1.ToolSpec{
		Name:   RunCommand,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Run a command with sh -c in the workspace and return what it prints, standard output and error together, and its exit code. " +
			"It gets no input, so use flags that make programs ask nothing. Each call is a new shell: cd and variables do not last. " +
			"When the shell ends, everything that it started is killed, background processes too: a server that later calls need takes background: true. " +
			"Of long output the middle is left out; write it to a file and read that when you need all of it.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"command":{"type":"string","minLength":1,"description":"The command line."},` +
			`"timeout_seconds":{"type":"integer","minimum":1,"maximum":86400,"description":"Time after which it is killed. Set it for builds and tests that take long."},` +
			`"background":{"type":"boolean","description":"Start it and return at once with an id for command_output and stop_command: for servers and watchers next to your other calls. At most 4 at a time. It has no time limit unless timeout_seconds is set, and it is killed when the run ends."},` +
			`"unconfined":{"type":"string","minLength":1,"description":"Why it has to run outside of the sandbox. A person is asked each time. Only after the sandbox has refused what the task needs."},` +
			`"hosts":{"type":"array","minItems":1,"maxItems":20,"items":{"type":"string","minLength":1},"description":"Hosts that it needs and the sandbox refuses, such as example.com, example.com:8443 or *.example.com. A person is asked each time."}},` +
			`"required":["command"],"additionalProperties":false}`,
		Usage: "To build, test, run programs and work with version control. Not to read, write, find or search files: the " +
			"tools for that are quicker and safer. After changes run the tests or the build that show whether they work.",
		Annotations: &harnessv1.ToolAnnotations{
			Writes: true, Executes: true,
			Durability:      harnessv1.Durability_DURABILITY_ANCHORING,
			PreservedFields: []string{"exit_code", "command"},
		},
	}, runCommand))
}

type runCommandArguments struct {
	Command        string  `json:"command"`
	TimeoutSeconds float64 `json:"timeout_seconds"`
	Background     bool    `json:"background"`
}

func (a runCommandArguments) timeLimit() time.Duration {
	if a.Background {
		return 0 // it limits the background command, not the call
	}
	return time.Duration(a.TimeoutSeconds) * time.Second
}

// timeoutExitCode is the exit code of a command that was stopped, as of timeout(1).
const timeoutExitCode = 124

func runCommand(ctx context.Context, env *Environment, a runCommandArguments) Result {
	if strings.ContainsRune(a.Command, 0) {
		return Failed("command: holds a NUL character.")
	}
	if a.Background {
		return startCommand(ctx, env, a)
	}
	output := toolhost.NewExcerpt(env.Limits.CommandHeadBytes, env.Limits.CommandTailBytes)
	shown := redraw.NewFilter(output)
	exit, err := env.Command(ctx, a.Command, shown)
	_ = shown.Close() // an excerpt takes all
	text := output.Text("To see all of it, write it to a file and read that.")
	if exit.RefusedHosts != "" {
		text = toolhost.AppendLine(text, "["+exit.RefusedHosts+"]")
	}
	result := func(r Result) Result {
		r.Level = exit.Level
		return r
	}
	switch {
	case exit.Unconfined:
		return notConfined(exit, text)
	case err != nil:
		text = toolhost.AppendLine(text, "[The command's supervisor failed. Everything that was found of the command was killed; how far it had come is not known.]")
		return result(Result{Text: text, IsError: true, Interrupted: ctx.Err() != nil, TimeoutHint: timeoutHint})
	case exit.Error != "":
		return Failed(fmt.Sprintf("The command could not be started: %s.", exit.Error))
	case exit.Stopped:
		code := int32(timeoutExitCode)
		return result(Result{Text: text, IsError: true, Interrupted: true, ExitCode: &code, TimeoutHint: timeoutHint})
	}
	if exit.Refused != nil {
		if note := exit.Refused(text); note != "" {
			text = toolhost.AppendLine(text, "["+note+"]")
		}
	}
	if exit.Exceeded != "" {
		text = toolhost.AppendLine(text, fmt.Sprintf("[The command was killed: %s, which is a limit of the sandbox.]", exit.Exceeded))
	}
	code := int32(exit.Code) //nolint:gosec // an exit code
	return result(Result{Text: toolhost.AppendLine(text, exitNote(exit)), IsError: code != 0, ExitCode: &code})
}

// startCommand starts a background command.
func startCommand(ctx context.Context, env *Environment, a runCommandArguments) Result {
	started, err := env.Start(ctx, a.Command, time.Duration(a.TimeoutSeconds)*time.Second)
	switch exit := started.Exit; {
	case started.Interrupted:
		return Result{IsError: true, Interrupted: true, TimeoutHint: "It had not begun and was killed."}
	case started.Refused != "":
		return Failed(started.Refused)
	case exit.Unconfined:
		return notConfined(exit, "")
	case err != nil || started.Command == nil:
		return Failed(fmt.Sprintf("The background command could not be started: %s.", cmp.Or(exit.Error, "the reason lies with the tool host")))
	}
	return Result{Text: toolhost.BackgroundStarted(started.Command.GetId()), Background: started.Command, Level: started.Exit.Level}
}

// notConfined returns the result of a command that was not run, because it could not be
// confined.
func notConfined(exit command.Exit, output string) Result {
	r := Failed(toolhost.AppendLine(output, fmt.Sprintf("The command was not run: the sandbox could not be set up (%s).", exit.Error)))
	r.Unconfined = true
	return r
}

const timeoutHint = "Everything that it started was killed. For more time set timeout_seconds."

// exitNote returns the line that tells the model how a command ended.
func exitNote(exit command.Exit) string {
	note := fmt.Sprintf("[exit code %d", exit.Code)
	if exit.Signal != 0 {
		note += fmt.Sprintf(", killed by signal %d", exit.Signal)
	}
	if len(exit.Left) > 0 {
		note += "; killed the processes that it left running: " + toolhost.Clip(strings.Join(exit.Left, ", "), 300)
	}
	return note + "]"
}
