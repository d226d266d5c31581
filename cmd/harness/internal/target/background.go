package target

import (
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/daemon"
)

// NewBackground returns how commands use the background process.
func NewBackground(a *console.Console) *backend.Background {
	file, _ := filepath.Abs(a.Catalogue) // models has read it
	if a.Catalogue == "" {
		file = ""
	}
	return &backend.Background{Program: daemon.Program{
		Catalogue: file, Path: a.Program, Environ: a.Environ, Build: a.Build(), Note: func(text string) { a.Report("%s", console.OneLine(text)) },
	}}
}
