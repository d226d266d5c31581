package run

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxGoal bounds a goal, in bytes; the gateway has the same bound.
const maxGoal = 1 << 20

// goal returns the task for the agent: the words, with the text on stdin below them, or all of
// stdin for "-".
func (c *Cmd) goal(a *console.Console) (string, error) {
	goal, err := a.SaidWithMaterial(c.Goal, "GOAL", "goal")
	if err != nil {
		return "", err
	}
	if len(goal) > maxGoal {
		return "", fmt.Errorf("GOAL: %d bytes, at most %d: write the text to a file in the workspace, and name the file in the goal", len(goal), maxGoal)
	}
	return goal, nil
}

// unknownTool matches the gateway's error about the name in a rule of a tool.
var unknownTool = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^spec\.agent\.tools\[(\d+)\]\.name: unknown tool ("[^"]*"): (.*)$`)
})

// inFlags returns an error of the gateway about a tool of --allow as one about that flag.
func (c *Cmd) inFlags(spec *harnessv1.RunSpec, err error) error {
	match := unknownTool().FindStringSubmatch(console.Message(err))
	if match == nil {
		return err
	}
	at, _ := strconv.Atoi(match[1]) // digits
	if at < len(spec.GetAgent().GetTools())-len(c.Allow) {
		return err
	}
	if list, found := strings.CutPrefix(match[3], "must be one of "); found {
		return errors.New("--allow: no tool has the name " + match[2] + " (a command is no tool: run_command runs them): it must be one of " + list)
	}
	return errors.New("--allow: no tool has the name " + match[2] + ": " + match[3])
}
