package cli

import (
	"context"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// reach connects to the hooks that are services. One that does not answer and fails
// closed is an error at its place in the file; any other is a remark.
func reach(ctx context.Context, a *app, file *agentfile.File) error {
	warnings, err := hookcaller.New(hookcaller.Config{}).Reach(ctx, file.Agent.GetHooks())
	for _, warning := range warnings {
		a.printNote("%s", warning)
	}
	return file.Locate(fault.In("spec.agent", err))
}
