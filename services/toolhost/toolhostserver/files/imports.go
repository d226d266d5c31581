package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// maxImported bounds the files that all instruction files of a workspace import together.
const maxImported = 64

// importer follows the imports of instruction files within the root of a repository.
type importer struct {
	files *Files
	r     git.Repository
	root  *workspace.Workspace
	// read are the files that were read, by their paths relative to the root and without links.
	read map[string]bool
	// unaccepted are the imports that wait for a person, relative to the workspace.
	unaccepted []string
	imported   int
}

// all returns instruction files, followed by what they import: of too many files those are left out first.
func (im *importer) all(ctx context.Context, found []toolhost.FoundInstruction) []toolhost.FoundInstruction {
	var more []toolhost.FoundInstruction
	for i, f := range found {
		all := im.add(ctx, disk.Relative(im.r.Root, filepath.Join(im.r.Workspace, f.Path)), f, 0)
		found[i], more = all[0], append(more, all[1:]...)
	}
	return append(found, more...)
}

// add returns an instruction file, relative to the root, and the files that it imports, each once, in the order in which it names them. Its notes
// name the others.
func (im *importer) add(ctx context.Context, name string, f toolhost.FoundInstruction, depth int) []toolhost.FoundInstruction {
	im.read[im.resolved(name)] = true
	if !strings.Contains(f.Head, "@") {
		return []toolhost.FoundInstruction{f}
	}
	var more []toolhost.FoundInstruction
	for _, i := range toolhost.Imports(filepath.ToSlash(name), f.Head) {
		var why string
		switch resolved := im.resolved(i.Path); {
		case i.Path == "":
			why = "it is outside of the repository"
		case im.read[resolved]:
			continue
		case depth == toolhost.MaxImportDepth:
			why = fmt.Sprintf("imports are followed %d files deep", toolhost.MaxImportDepth)
		case im.imported == maxImported:
			why = fmt.Sprintf("%d imports are read", maxImported)
		default:
			found, err := im.file(ctx, resolved)
			switch {
			case err == nil:
				im.imported++
				more = append(more, im.add(ctx, resolved, found, depth+1)...)
				continue
			case errors.Is(err, errWaits):
				im.read[resolved] = true
				im.unaccepted = append(im.unaccepted, toolhost.Readable(im.shown(resolved)))
				continue
			case errors.Is(err, fs.ErrNotExist):
				why = "there is no such file"
			default:
				why = "it cannot be read: it must be a text in the repository, and not too large"
			}
		}
		if i.Named() {
			f.Notes = append(f.Notes, fmt.Sprintf("[@%s is not read: %s.]", toolhost.Clip(i.Target, 120), why))
		}
	}
	return append([]toolhost.FoundInstruction{f}, more...)
}

// resolved returns a path relative to the root without links; the path itself if it leads out of the root.
func (im *importer) resolved(name string) string {
	if resolved, err := im.root.Resolve(name); err == nil && name != "" {
		return resolved
	}
	return name
}

func (im *importer) shown(name string) string {
	shown, err := filepath.Rel(im.r.Workspace, filepath.Join(im.r.Root, name))
	if err != nil {
		return name
	}
	return shown
}

// file reads an imported file, relative to the root and without links. Files of git are none.
func (im *importer) file(ctx context.Context, name string) (found toolhost.FoundInstruction, err error) {
	if slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
		return found, fs.ErrInvalid
	}
	file, err := im.root.Digest(ctx, name, toolhost.InstructionBytes, maxSkillFile)
	if err != nil {
		return found, err
	}
	if strings.ContainsRune(string(file.Head), 0) {
		return found, fs.ErrInvalid
	}
	data, err := readRaw(im.r.Root, name)
	if err != nil {
		return found, err
	}
	path := filepath.Join(im.r.Root, name)
	if im.files.Waits(path, file.SHA256) || im.files.ReadAs(path, data) {
		return found, errWaits
	}
	return toolhost.FoundInstruction{Path: im.shown(name), Head: string(file.Head), Size: file.Size, Digest: file.SHA256}, nil
}
