package run

import (
	"context"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// othersLooked bounds the runs at work whose workspace is looked at.
const othersLooked = 32

// warnWide warns of a workspace that is a home directory or the root of all files.
func warnWide(a *console.Console, workspace string) {
	switch workspace {
	case "/":
		a.Report("the workspace is /, the root of all files: the agent may read and change what is below it; --workspace DIR names another folder")
	case filepath.Clean(a.Env("HOME")):
		a.Report("the workspace is your home directory %s: the agent may read and change what is below it; --workspace DIR names another folder", workspace)
	}
}

// warnShared warns of the runs that work in the workspace of a run that starts. Those that cannot be
// read are left out.
func (c *Cmd) warnShared(ctx context.Context, a *console.Console, s *backend.Session, workspace string) {
	if c.RunID != "" || !s.Working { // the same command may follow its own run; without a mesh no run works
		return
	}
	looked := 0
	for run, err := range c.Listed(ctx, s, []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_RUNNING}, false, othersLooked) {
		if looked++; err != nil || looked > othersLooked {
			return
		}
		other, err := s.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: c.Namespace, RunId: run.GetRunId()})
		if err != nil || other.GetSpec().GetWorkspace() != workspace || target.HasEnded(other.GetRun().GetStatus()) {
			continue
		}
		a.Report("run %s is at work in this workspace (%s): both may change the same files; harness watch %s%s follows it",
			run.GetRunId(), render.Short(run.GetGoal(), 60), run.GetRunId(), c.Words(a))
	}
}
