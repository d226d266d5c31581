package toolhostserver

import (
	"context"
	"path/filepath"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// instructions returns the instruction files from the workspace up to the repository's
// root, nearest first. It leaves out files that cannot be read, that are larger than
// files may be, or that are links out of the root.
func (s *Server) instructions(ctx context.Context, r git.Repository) []*harnessv1.InstructionFile {
	root, err := s.openWorkspace(r.Root)
	if err != nil {
		return nil
	}
	defer root.Close()
	var found []toolhost.FoundInstruction
	for at := r.Workspace; ; at = filepath.Dir(at) {
		for _, name := range toolhost.InstructionNames {
			if f, ok := s.instruction(ctx, r, root, filepath.Join(at, name)); ok {
				found = append(found, f)
			}
		}
		if at == r.Root || at == filepath.Dir(at) {
			return toolhost.Instructions(found)
		}
	}
}

func (s *Server) instruction(ctx context.Context, r git.Repository, root *workspace.Workspace, path string) (f toolhost.FoundInstruction, ok bool) {
	name, err := filepath.Rel(r.Root, path)
	if err != nil {
		return f, false
	}
	file, err := root.Digest(ctx, name, toolhost.InstructionBytes, int64(s.config.Limits.FileBytes))
	if err != nil {
		return f, false
	}
	shown, err := filepath.Rel(r.Workspace, path)
	return toolhost.FoundInstruction{Path: shown, Head: string(file.Head), Size: file.Size, Digest: file.SHA256}, err == nil
}
