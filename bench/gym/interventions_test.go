package gym

import (
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Names of what the harness does about a model, as the table has them.
const (
	nudge      = "nudge"
	correction = "loop correction"
	stalled    = "stall"
	failedCall = "failed call"
	refused    = "refused call"
	loopEnd    = "loop given up"
	stripped   = "artifact stripped"
	auditTold  = "failed audit reported"
	cutOff     = "cut answer dropped"
)

// rejection is what all stops that were not accepted begin with.
const rejection = "stop rejected: "

// rejected is a stop that was not accepted.
func rejected(kind string) string { return rejection + kind }

// hint is a just-in-time instruction.
func hint(rule string) string { return "hint " + rule }

// interventions are what the harness did about the model, each with how often, in the
// order in which each came first.
func interventions(events []*harnessv1.Event) []string {
	var order []string
	count := map[string]int{}
	for _, e := range events {
		name := intervention(e)
		if name == "" {
			continue
		}
		if count[name] == 0 {
			order = append(order, name)
		}
		count[name]++
	}
	for i, name := range order {
		if count[name] > 1 {
			order[i] = fmt.Sprintf("%s ×%d", name, count[name])
		}
	}
	return order
}

func intervention(e *harnessv1.Event) string {
	switch {
	case e.GetStopRejected() != nil:
		return rejected(e.GetStopRejected().GetKind())
	case e.GetContinuationPrompt() != nil:
		return nudge
	case e.GetStallDetected() != nil:
		return stalled
	case e.GetToolDenied() != nil:
		return refused
	case e.GetToolError() != nil:
		return failedCall
	case e.GetDoomLoopDetected() != nil:
		if e.GetDoomLoopDetected().GetCorrection() == 0 {
			return loopEnd
		}
		return correction
	case strings.Contains(content.Text(e.GetToolResult().GetResult()), "Stored without words about it"):
		return stripped
	case e.GetModelResponse().GetFinishReason() == "length":
		return cutOff
	case e.GetGuidanceInjected().GetKind() == "control":
		return auditTold
	case e.GetGuidanceInjected().GetKind() == "jit":
		return hint(e.GetGuidanceInjected().GetRuleId())
	}
	return ""
}

// has reports whether one of the interventions has a name.
func has(all []string, name string) bool {
	return slices.ContainsFunc(all, func(have string) bool {
		return have == name || strings.HasPrefix(have, name+" ×")
	})
}
