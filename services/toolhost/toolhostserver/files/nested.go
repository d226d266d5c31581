package files

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

const (
	// maxNestedRuns bounds the runs whose shown files are remembered, maxNestedDepth the folders of a path that are searched.
	maxNestedRuns  = 512
	maxNestedDepth = 32
)

// ShownInstructions remembers which instruction files below a workspace runs were shown. What it forgets, as at the end of the process, is shown again.
type ShownInstructions struct {
	mu   sync.Mutex
	runs map[string]map[string]string // run, path and digest: the call whose result has it
	used []string                     // the runs, the newest last
}

// Below returns the instruction files that lie between a workspace and paths in it, outer ones first, that the run was not shown yet, with what they
// import. A call that is made again gets the same.
func (f *Files) Below(ctx context.Context, n *ShownInstructions, w *workspace.Workspace, run, call string, paths []string) []*toolhost.NestedInstruction {
	var folders []string
	for _, path := range paths {
		if first, _, _ := strings.Cut(path, "/"); first != "" && first != ".." { // nearly always a file, or no path at all
			if info, err := w.Root.Lstat(first); err != nil || info.Mode().IsRegular() {
				continue
			}
		}
		rel, err := w.Resolve(path)
		if err != nil {
			continue
		}
		parts := strings.Split(rel, "/")
		for i := range parts[:min(len(parts), maxNestedDepth)] {
			folder := filepath.Join(parts[:i+1]...)
			if folder == "." || slices.Contains(folders, folder) {
				continue
			}
			if info, err := w.Root.Lstat(folder); err != nil || !info.IsDir() {
				break
			}
			folders = append(folders, folder)
		}
	}
	if len(folders) == 0 {
		return nil
	}
	r := git.Repository{Workspace: w.Dir, Root: w.Dir}
	var found []*toolhost.NestedInstruction
	for _, folder := range folders {
		var here []toolhost.FoundInstruction
		imports := &importer{files: f, r: r, root: w, read: map[string]bool{}}
		for _, name := range toolhost.InstructionNames {
			path := filepath.Join(w.Dir, folder, name)
			i, ok := f.instruction(ctx, r, w, path)
			switch {
			case !ok:
			case f.Waits(path, i.Digest):
				found = n.add(found, run, call, &toolhost.NestedInstruction{Path: toolhost.Readable(i.Path), Digest: i.Digest, Waits: true})
			default:
				here = append(here, i)
				imports.read[imports.resolved(disk.Relative(w.Dir, path))] = true
			}
		}
		for _, i := range toolhost.Instructions(imports.all(ctx, here)) {
			found = n.add(found, run, call, &toolhost.NestedInstruction{Path: i.GetPath(), Content: i.GetContent(), Digest: i.GetDigest()})
		}
		for _, path := range imports.unaccepted {
			found = n.add(found, run, call, &toolhost.NestedInstruction{Path: path, Waits: true})
		}
	}
	return found
}

// add appends a file that the run was not shown, or was shown by this call, and remembers it.
func (n *ShownInstructions) add(found []*toolhost.NestedInstruction, run, call string, i *toolhost.NestedInstruction) []*toolhost.NestedInstruction {
	n.mu.Lock()
	defer n.mu.Unlock()
	shown := n.runs[run]
	if shown == nil {
		shown = map[string]string{}
		if n.runs == nil {
			n.runs = map[string]map[string]string{}
		}
		n.runs[run], n.used = shown, append(n.used, run)
		if len(n.used) > maxNestedRuns {
			delete(n.runs, n.used[0])
			n.used = n.used[1:]
		}
	}
	key := i.Path + "\x00" + i.Digest
	if i.Waits {
		key += "\x00waits"
	}
	if by, ok := shown[key]; ok && by != call {
		return found
	}
	shown[key] = call
	return append(found, i)
}
