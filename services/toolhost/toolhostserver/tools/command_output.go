package tools

import (
	"context"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/background"
)

// CommandOutput is the name of the tool that reads the output of a background command.
const CommandOutput = "command_output"

func init() {
	register(71, New(&harnessv1.ToolSpec{
		Name:   CommandOutput,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Read what a background command has printed, standard output and error together, from a byte offset on, and whether it still runs or how it ended. " +
			"The result names the offset at which to continue.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"id":{"type":"string","minLength":1,"description":"The id that run_command returned, such as bg1."},` +
			`"offset":{"type":"integer","minimum":0,"description":"The first byte to read. Default 0."},` +
			`"wait_seconds":{"type":"integer","minimum":0,"maximum":60,"description":"How long to wait for more output if there is none after the offset. Default 0."}},` +
			`"required":["id"],"additionalProperties":false}`,
		Usage: "To see whether a server is ready or what it logged. Wait with wait_seconds instead of calling again and again.",
		Annotations: &harnessv1.ToolAnnotations{
			Reads: true, Idempotent: true, ParallelSafe: true,
			Durability: harnessv1.Durability_DURABILITY_EPHEMERAL,
		},
	}, commandOutput))
}

type commandOutputArguments struct {
	ID          string  `json:"id"`
	Offset      float64 `json:"offset"`
	WaitSeconds float64 `json:"wait_seconds"`
}

// outputBytes is the maximum size of the output in a result.
const outputBytes = 32 << 10

func (a commandOutputArguments) wait() time.Duration {
	return time.Duration(a.WaitSeconds) * time.Second
}

// timeLimit returns a limit that does not cut a wait short.
func (a commandOutputArguments) timeLimit() time.Duration {
	if a.WaitSeconds == 0 {
		return 0
	}
	return a.wait() + time.Minute
}

func commandOutput(ctx context.Context, env *Environment, a commandOutputArguments) Result {
	out, err := env.Read(ctx, background.Query{ID: a.ID, Offset: int64(a.Offset), Limit: int64(min(outputBytes, env.Limits.ReadBytes)), Wait: a.wait()})
	switch {
	case ctx.Err() != nil:
		return Result{IsError: true, Interrupted: true}
	case err != nil:
		return Failed("The output cannot be read: " + err.Error() + ".")
	case out.Unknown:
		return Failed(toolhost.BackgroundNotFound(a.ID, out.Known))
	}
	return Result{Text: toolhost.BackgroundOutput(out.Text, out.Next, out.Left, out.Dropped, out.End)}
}
