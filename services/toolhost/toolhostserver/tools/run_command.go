package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
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
			"When the shell ends, everything that it started is killed, background processes too. " +
			"Of long output the middle is left out; write it to a file and read that when you need all of it.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"command":{"type":"string","minLength":1,"description":"The command line."},` +
			`"timeout_seconds":{"type":"integer","minimum":1,"maximum":86400,"description":"Time after which it is killed. Set it for builds and tests that take long."}},` +
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
}

func (a runCommandArguments) timeLimit() time.Duration {
	return time.Duration(a.TimeoutSeconds) * time.Second
}

// timeoutExitCode is the exit code of a command that was stopped, as of timeout(1).
const timeoutExitCode = 124

func runCommand(ctx context.Context, env *Environment, a runCommandArguments) Result {
	if strings.ContainsRune(a.Command, 0) {
		return Failed("command: holds a NUL character.")
	}
	output := toolhost.NewExcerpt(env.Limits.CommandHeadBytes, env.Limits.CommandTailBytes)
	exit, err := env.Command(ctx, a.Command, output)
	text := output.Text("To see all of it, write it to a file and read that.")
	switch {
	case err != nil:
		text = toolhost.AppendLine(text, "[The command's supervisor failed. Everything that was found of the command was killed; how far it had come is not known.]")
		return Result{Text: text, IsError: true, Interrupted: ctx.Err() != nil, TimeoutHint: timeoutHint}
	case exit.Error != "":
		return Failed(fmt.Sprintf("The command could not be started: %s.", exit.Error))
	case exit.Stopped:
		code := int32(timeoutExitCode)
		return Result{Text: text, IsError: true, Interrupted: true, ExitCode: &code, TimeoutHint: timeoutHint}
	}
	code := int32(exit.Code) //nolint:gosec // an exit code
	return Result{Text: toolhost.AppendLine(text, exitNote(exit)), IsError: code != 0, ExitCode: &code}
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
