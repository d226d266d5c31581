package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// maxMerged bounds a file whose lines are merged, in bytes.
const maxMerged = 16 << 20

// MergeRequest is a call that merges a worktree.
type MergeRequest struct {
	// Namespace, Parent and ParentSequence are of the run that makes the call, Call is the id of the call.
	Namespace, Parent string
	ParentSequence    uint64
	Call              string
	// Run is the run whose worktree is merged.
	Run string
	// Workspace is that of the parent. Refuse returns why one of its files must not be written; nil if it may be.
	Workspace string
	Refuse    func(path, name string) error
}

// Result is the result of a merge.
type Result struct {
	// Text is the result for the model.
	Text string
	// Failed reports that nothing was merged, Interrupted that ctx has ended first.
	Failed, Interrupted bool
	// Changed has the changed paths, relative to the workspace.
	Changed []string
}

func failed(text string) Result { return Result{Text: text, Failed: true} }

// Merge brings what a sub-agent has changed to the workspace of the run that started it: all or nothing.
func (t *Worktrees) Merge(ctx context.Context, q MergeRequest) Result {
	run := q.Run
	folder := t.folder(q.Namespace, run)
	unlock, err := t.lock(ctx, folder)
	if err != nil {
		return Result{Interrupted: true}
	}
	defer unlock()
	record, err := t.read(folder)
	switch {
	case err != nil:
		return failed("The worktree cannot be read: " + disk.Reason(err) + ".")
	case record == nil || record.Namespace != q.Namespace || record.Run != run || record.Parent != q.Parent || record.ParentSequence != q.ParentSequence:
		return failed(fmt.Sprintf("There is no worktree of a run %s that a call of this run started. "+
			"The result of a sub-agent's call names its run.", toolhost.PlainName(run)))
	}
	if r, again := record.Merged[q.Call]; again {
		return Result{Text: r.Text, Changed: r.Changed}
	}
	switch {
	case !record.Ended:
		return failed("Nothing was merged: run " + run + " has not ended. Wait for its end.")
	case !disk.Exists(filepath.Join(folder, worktreeFiles)):
		return Result{Text: toolhost.MergeText(run, nil, nil, nil)}
	case filepath.Clean(q.Workspace) != record.Workspace:
		return failed("Nothing was merged: this run works in another workspace by now.")
	}
	m := &merge{t: t, refuse: q.Refuse, folder: folder, record: record}
	result, err := m.run(ctx, q.Call)
	switch {
	case ctx.Err() != nil && err != nil:
		return Result{Interrupted: true}
	case err != nil:
		t.config.Logger.Warn("merge of a worktree failed", "namespace", q.Namespace, "run", run, "error", err)
		return failed("Nothing was merged: " + disk.Reason(err) + ".")
	}
	return result
}

// merge is one merge of a worktree. It is locked.
type merge struct {
	t      *Worktrees
	refuse func(path, name string) error
	folder string
	record *treeRecord

	theirs, ours *treeFolder
	base         map[string]toolhost.TreeFile
	changes      []*mergeChange
	conflicts    []string // with reasons
	refused      []string // with reasons
}

// mergeChange is how a file of the workspace changes. Old is the present file.
type mergeChange struct {
	Path     []byte
	Old, New toolhost.TreeFile
	Staged   string // name of the new content in the folder of the merge
	Saved    string // name of the old content
}

func (m *merge) run(ctx context.Context, call string) (Result, error) {
	base, theirs, _, err := m.t.changesOf(ctx, m.folder)
	if err != nil {
		return Result{}, err
	}
	if m.theirs, err = openTree(ctx, filepath.Join(m.folder, worktreeFiles)); err != nil {
		return Result{}, err
	}
	defer m.theirs.close()
	if m.ours, err = openTree(ctx, m.record.Workspace); err != nil {
		return Result{}, err
	}
	defer m.ours.close()
	stray, err := m.t.strayRefs(ctx, m.folder)
	if err != nil {
		return Result{}, err
	}
	m.base = base
	stage := filepath.Join(m.folder, worktreeMerge)
	if err := errors.Join(os.RemoveAll(stage), os.Mkdir(stage, 0o700)); err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	paths := toolhost.ChangedPaths(base, theirs)
	if paths, err = m.withoutIgnored(ctx, paths, base); err != nil {
		return Result{}, err
	}
	for _, name := range paths {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		if err := m.decide(ctx, stage, name, base[name], theirs); err != nil {
			return Result{}, err
		}
	}
	switch {
	case len(m.refused) > 0:
		return failed("Nothing was merged, because the work changes places that need a person's approval: " + toolhost.JoinSome(m.refused) +
			". Ask the user to change them, or have the sub-agent undo these changes."), nil
	case len(m.conflicts) > 0:
		return failed("Nothing was merged. These files conflict with changes in the workspace: " + toolhost.JoinSome(m.conflicts) +
			". Make their changes yourself or have a sub-agent do so on the present files; then merge again."), nil
	}
	result, conflict, err := m.apply(call, stage, stray)
	if conflict != "" {
		return failed("Nothing was merged. " + toolhost.PlainName(conflict) + " changed or could not be written during the merge."), nil
	}
	if err != nil {
		return Result{}, err
	}
	if len(stray) == 0 {
		if err := m.t.dropFiles(m.folder); err != nil {
			m.t.config.Logger.Warn("a merged worktree cannot be removed", "folder", m.folder, "error", err)
		}
	}
	return result, nil
}

// withoutIgnored leaves out added files that rules of the repository above the workspace ignore: the worktree
// does not have these rules.
func (m *merge) withoutIgnored(ctx context.Context, paths []string, base map[string]toolhost.TreeFile) ([]string, error) {
	r, err := git.Find(m.record.Workspace)
	if err != nil || !r.Exists || r.Root == r.Workspace {
		return paths, nil //nolint:nilerr // there are no such rules
	}
	var asked strings.Builder
	for _, name := range paths {
		if base[name].Mode == toolhost.NoFile {
			asked.WriteString(name + "\x00")
		}
	}
	output := &git.Output{Limit: worktreeListBytes}
	err = m.t.config.Git.WithSubstitute(r, func(program string, environ []string) error {
		options := slices.DeleteFunc(toolhost.GitOptions(), func(o string) bool { return o == "--literal-pathspecs" })
		err := m.t.config.Git.Run(ctx, git.Run{
			Program: program, Dir: r.Workspace, Environ: environ, Arguments: append(options, "check-ignore", "-z", "--stdin"),
			Input: strings.NewReader(asked.String()), Output: output,
		})
		if err != nil && output.Len() == 0 && ctx.Err() == nil {
			return nil //nolint:nilerr // its exit code is 1 if nothing is ignored
		}
		return err
	})
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(output.String(), "\x00") {
		ignored[name] = true
	}
	return slices.DeleteFunc(paths, func(name string) bool { return ignored[name] }), err
}

// decide decides about a path, and stages its new content.
func (m *merge) decide(ctx context.Context, stage, name string, base toolhost.TreeFile, all map[string]toolhost.TreeFile) error {
	theirs := all[name]
	if theirs.Mode == toolhost.Submodule {
		m.conflicts = append(m.conflicts, toolhost.PlainName(name)+" (a submodule or a repository in the worktree, whose files cannot be merged)")
		return nil
	}
	ours, err := m.ours.read(name, nil)
	if err != nil {
		return err
	}
	at, found := m.ours.blocked(name)
	if deleted := m.base[at].Mode != toolhost.NoFile && all[at].Mode == toolhost.NoFile; found && !deleted && theirs.Mode != toolhost.NoFile {
		m.conflicts = append(m.conflicts, toolhost.PlainName(name)+" ("+toolhost.PlainName(at)+" is no folder)")
		return nil
	}
	if ours.Mode == toolhost.Directory && base.Mode == toolhost.NoFile && m.empties(name, all) {
		ours = toolhost.TreeFile{}
	}
	source, mode := toolhost.MergeFile(base, theirs, ours)
	if source == toolhost.FromOurs && mode == ours.Mode {
		return nil
	}
	if source == toolhost.Conflict {
		m.conflicts = append(m.conflicts, toolhost.PlainName(name))
		return nil
	}
	if below(filepath.Join(m.record.Workspace, name), m.t.private()) {
		m.refused = append(m.refused, toolhost.PlainName(name)+" belongs to the harness")
		return nil
	}
	if err := m.refuse(name, name); err != nil {
		what, _, _ := strings.Cut(err.Error(), ";")
		m.refused = append(m.refused, toolhost.PlainName(name)+" "+what)
		return nil
	}
	c := &mergeChange{Path: []byte(name), Old: ours, Staged: fmt.Sprintf("new-%d", len(m.changes)), Saved: fmt.Sprintf("old-%d", len(m.changes))}
	switch source {
	case toolhost.FromOurs:
		c.New, err = stageFile(filepath.Join(stage, c.Staged), m.ours, name)
	case toolhost.FromTheirs:
		c.New, err = stageFile(filepath.Join(stage, c.Staged), m.theirs, name)
	default:
		c.New, err = m.combine(ctx, stage, c, name, base)
	}
	if errors.Is(err, errConflict) {
		m.conflicts = append(m.conflicts, toolhost.PlainName(name))
		return nil
	}
	c.New.Mode = mode
	m.changes = append(m.changes, c)
	return err
}

// empties reports whether the merge deletes all that is in a folder of the workspace.
func (m *merge) empties(name string, theirs map[string]toolhost.TreeFile) bool {
	for at, f := range m.base {
		if strings.HasPrefix(at, name+"/") && theirs[at].Mode == toolhost.NoFile && f.Mode != toolhost.NoFile {
			return true // if anything else is in it, the merge fails when it writes the file
		}
	}
	return false
}
