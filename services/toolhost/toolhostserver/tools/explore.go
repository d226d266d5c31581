package tools

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// exploring returns the annotations of a tool that only looks around.
func exploring() *harnessv1.ToolAnnotations {
	return &harnessv1.ToolAnnotations{
		Explores: true, Idempotent: true, ParallelSafe: true,
		Durability: harnessv1.Durability_DURABILITY_EPHEMERAL,
	}
}

// includeIgnored is the argument with which a walk goes everywhere.
const includeIgnored = `"include_ignored":{"type":"boolean","description":"Also look at what .gitignore names, such as build output and installed packages."}`

// leftOutNote returns a note for the model if nothing was found and something was left out.
func leftOutNote(left workspace.LeftOut) string {
	switch left.Count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" [Left out because of .gitignore: %s; include_ignored: true has it too.]", toolhost.Clip(left.First, 200))
	}
	return fmt.Sprintf(" [Left out because of .gitignore: %s and %d more; include_ignored: true has them too.]", toolhost.Clip(left.First, 200), left.Count-1)
}

// extent returns what a search visits.
func (env *Environment) extent(start string, ignored bool, within string) workspace.Extent {
	return workspace.Extent{Start: start, All: ignored, Within: within, Depth: env.Limits.WalkDepth, Time: env.Limits.WalkTime}
}

// boundsNote returns what a search has not visited because of its bounds, and how to search it.
func boundsNote(left workspace.LeftOut, limits toolhost.Limits, narrower string) string {
	var note strings.Builder
	if left.Deep > 0 {
		name := toolhost.Clip(left.FirstDeep, 400)
		if left.Deep > 1 {
			name += fmt.Sprintf(" and %d more", left.Deep-1)
		}
		fmt.Fprintf(&note, "[Not searched: folders more than %d deep: %s; to search there, %s.]\n", limits.WalkDepth, name, narrower)
	}
	if left.Unvisited != "" {
		fmt.Fprintf(&note, "[Stopped after %s at %s, what follows it was not searched; %s.]\n", limits.WalkTime, toolhost.Clip(left.Unvisited, 400), narrower)
	}
	return note.String()
}

// exploreResult returns the result of a walk through the workspace that found matches.
// none is the text if there are no matches; more reports that a limit was reached.
func exploreResult(ctx context.Context, err error, text *strings.Builder, found int, more bool, none string) Result {
	switch {
	case ctx.Err() != nil:
		return Result{Text: text.String(), Interrupted: true}
	case err != nil:
		return Failed(disk.Reason(err) + ".")
	case found == 0:
		return Result{Text: none + "\n" + text.String()}
	case more:
		text.WriteString("[There is more; use a narrower pattern or path.]\n")
	}
	return Result{Text: text.String()}
}

// textPrefix is the number of bytes of a file that isBinary examines.
const textPrefix = 8000

// isBinary reports whether the beginning of a file has a NUL.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), textPrefix)], 0) >= 0
}
