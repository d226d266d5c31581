package runstate

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds of the paths that a state keeps: their number, and the bytes of one.
const (
	maxFiles = 64
	maxPath  = 160
)

// AddFiles adds files that were changed, each once; more reports that there are others. It changes s.
func AddFiles(s *harnessv1.Snapshot, paths []string, more bool) {
	if len(paths) == 0 && !more {
		return
	}
	if s.ChangedFiles == nil {
		s.ChangedFiles = &harnessv1.ChangedFiles{}
	}
	f := s.ChangedFiles
	f.More = f.GetMore() || more
	for _, path := range paths {
		path = content.Cut(path, maxPath)
		switch {
		case slices.Contains(f.GetPaths(), path):
		case len(f.GetPaths()) >= maxFiles:
			f.More = true
		default:
			f.Paths = append(f.Paths, path)
		}
	}
}
