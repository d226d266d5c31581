package admin

import (
	"context"
	"fmt"
	"runtime"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func (VersionCmd) Help() string {
	return "Example:\n\n  harness version"
}

type VersionCmd struct{}

func (VersionCmd) Run(_ context.Context, a *console.Console) (int, error) {
	text := fmt.Sprintf("harness %s\ncommit  %s\ngo      %s %s/%s\nschema  %d",
		a.Version, console.Commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runlog.Schema)
	return exit.Done, console.Emit(a.Out, []byte(text))
}
