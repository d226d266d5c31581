package show

import (
	"context"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// maxShownAgents bounds the sub-agents that an overview shows.
const maxShownAgents = 200

// agents returns the sub-agents below a run, one a line: each below the one that called it.
// Those of a run that cannot be read are left out.
func (c *Cmd) agents(ctx context.Context, s *backend.Session, run *harnessv1.Run) string {
	var lines []string
	c.addAgents(ctx, s, run.GetChildren(), "  ", &lines)
	if len(lines) == 0 {
		return ""
	}
	if more := len(lines) - maxShownAgents; more > 0 {
		lines = append(lines[:maxShownAgents], fmt.Sprintf("  and %d more", more))
	}
	return "\nsub-agents\n" + strings.Join(lines, "\n") + "\n"
}

func (c *Cmd) addAgents(ctx context.Context, s *backend.Session, children []*harnessv1.ChildRun, indent string, lines *[]string) {
	for _, child := range children {
		if len(*lines) > maxShownAgents {
			*lines = append(*lines, "")
			continue
		}
		*lines = append(*lines, indent+agentLine(child))
		if child.GetStatus() == harnessv1.RunStatus_RUN_STATUS_UNSPECIFIED {
			continue // it has not been started
		}
		if below, err := s.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: c.Namespace, RunId: child.GetRunId()}); err == nil {
			c.addAgents(ctx, s, below.GetRun().GetChildren(), indent+"  ", lines)
		}
	}
}

// agentLine returns a sub-agent in one line: its name, state, turns, tokens, cost and run.
func agentLine(child *harnessv1.ChildRun) string {
	state := "waits to start"
	if child.GetStatus() != harnessv1.RunStatus_RUN_STATUS_UNSPECIFIED {
		state = render.StatusName(child.GetStatus())
	}
	if kind := child.GetReason().GetKind(); kind != "" && child.GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING {
		state += " " + render.Clean(kind)
	}
	text := fmt.Sprintf("%s  %s  %d turns  %d tokens", render.Clean(child.GetAgent()), state, child.GetTurns(), runstate.TotalTokens(child.GetUsage()))
	if cost := child.GetUsage().GetCostMicroUsd(); cost > 0 {
		text += fmt.Sprintf("  $%.4f", float64(cost)/1e6)
	}
	return text + "  " + render.Clean(child.GetRunId())
}
