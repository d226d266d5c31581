package target

import (
	"errors"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// OneRun names the run of a command.
type OneRun struct {
	Target `embed:""`
	RunID  string `arg:"" name:"run" help:"Id of the run, or its beginning."`
}

func (o *OneRun) Check(a *console.Console) error {
	if err := o.Target.Check(a); err != nil {
		return err
	}
	if o.Namespace == "*" {
		return errors.New("--namespace: a run has one namespace, not *")
	}
	return console.RunName("RUN", o.RunID)
}

// Stored notes that an input is stored and what processes it.
func (o *OneRun) Stored(a *console.Console, s *backend.Session, what string) {
	if s.Local {
		a.Report("%s; no process is using %s: harness resume %s%s continues the run", what, o.Data, o.RunID, o.Words(a))
		return
	}
	a.Report("%s; harness watch %s%s follows the run", what, o.RunID, o.Words(a))
}

func HasEnded(s harnessv1.RunStatus) bool {
	switch s {
	case harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.RunStatus_RUN_STATUS_PARKED:
		return false
	default:
		return true
	}
}
