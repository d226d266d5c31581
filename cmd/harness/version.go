package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// version is set by the linker in releases.
var version = "dev"

type versionCmd struct{}

// commit returns the commit that the program is built from.
func commit() string {
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				commit += " (modified)"
			}
		}
	}
	return commit
}

func (versionCmd) run(_ context.Context, a *app) (int, error) {
	text := fmt.Sprintf("harness %s\ncommit  %s\ngo      %s %s/%s\nschema  %d",
		version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runlog.Schema)
	return follow.ExitDone, emit(a.out, []byte(text))
}
