package runspec

import (
	"context"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// Reach connects to the hooks that are services. One that does not answer and fails
// closed is an error at its place in the file; any other is a remark.
func Reach(ctx context.Context, a *console.Console, file *agentfile.File) error {
	warnings, err := hookcaller.New(hookcaller.Config{}).Reach(ctx, file.Agent.GetHooks())
	for _, warning := range warnings {
		a.Report("%s", warning)
	}
	return file.Locate(fault.In("spec.agent", err))
}
