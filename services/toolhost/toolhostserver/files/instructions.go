package files

import (
	"context"
	"path/filepath"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// maxUnaccepted bounds the files that are named because they wait for a person.
const maxUnaccepted = 32

// Instructions returns the instruction files from the workspace up to the repository's
// root, nearest first, and then the files of the repository that they import. It leaves out files that cannot be read, that are larger than
// files may be, or that are links out of the root. unaccepted are those that wait for a person, by
// the path relative to the workspace.
func (f *Files) Instructions(ctx context.Context, r git.Repository) (files []*harnessv1.InstructionFile, unaccepted []string) {
	root, err := f.Open(r.Root)
	if err != nil {
		return nil, nil
	}
	defer root.Close()
	var found []toolhost.FoundInstruction
	imports := &importer{files: f, r: r, root: root, read: map[string]bool{}}
	for at := r.Workspace; ; at = filepath.Dir(at) {
		for _, name := range toolhost.InstructionNames {
			i, ok := f.instruction(ctx, r, root, filepath.Join(at, name))
			switch {
			case !ok:
			case f.Waits(filepath.Join(at, name), i.Digest):
				unaccepted = append(unaccepted, toolhost.Readable(i.Path))
			default:
				found = append(found, i)
				imports.read[imports.resolved(disk.Relative(r.Root, filepath.Join(at, name)))] = true
			}
		}
		if at == r.Root || at == filepath.Dir(at) {
			found = imports.all(ctx, found)
			return toolhost.Instructions(found), append(unaccepted, imports.unaccepted...)
		}
	}
}

func (f *Files) instruction(ctx context.Context, r git.Repository, root *workspace.Workspace, path string) (found toolhost.FoundInstruction, ok bool) {
	name, err := filepath.Rel(r.Root, path)
	if err != nil {
		return found, false
	}
	file, err := root.Digest(ctx, name, toolhost.InstructionBytes, int64(f.limits.FileBytes))
	if err != nil {
		return found, false
	}
	shown, err := filepath.Rel(r.Workspace, path)
	return toolhost.FoundInstruction{Path: shown, Head: string(file.Head), Size: file.Size, Digest: file.SHA256}, err == nil
}
