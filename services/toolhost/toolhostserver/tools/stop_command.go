package tools

import (
	"context"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// StopCommand is the name of the tool that kills a background command.
const StopCommand = "stop_command"

func init() {
	register(72, New(&harnessv1.ToolSpec{
		Name:        StopCommand,
		Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Kill a background command with everything that it started, and return how it ended. Its output stays readable.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"id":{"type":"string","minLength":1,"description":"The id that run_command returned, such as bg1."}},` +
			`"required":["id"],"additionalProperties":false}`,
		Usage: "To end a background command that is no longer needed, or to start it again with a change.",
		Annotations: &harnessv1.ToolAnnotations{
			Writes: true, Idempotent: true,
			Durability: harnessv1.Durability_DURABILITY_EPHEMERAL,
		},
	}, stopCommand))
}

type stopCommandArguments struct {
	ID string `json:"id"`
}

func stopCommand(ctx context.Context, env *Environment, a stopCommandArguments) Result {
	end, known, err := env.Stop(ctx, a.ID)
	switch {
	case ctx.Err() != nil:
		return Result{IsError: true, Interrupted: true}
	case err != nil:
		return Failed("The command could not be stopped: " + err.Error() + ".")
	case end == "":
		return Failed(toolhost.BackgroundNotFound(a.ID, known))
	}
	return Result{Text: fmt.Sprintf("[%s: %s]", a.ID, end)}
}
