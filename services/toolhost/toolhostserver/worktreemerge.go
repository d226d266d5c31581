package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// maxMerged bounds a file whose lines are merged, in bytes.
const maxMerged = 16 << 20

// mergeWorktree brings what a sub-agent has changed to the workspace of the run that started it: all or nothing.
func (s *Server) mergeWorktree(ctx context.Context, w *workspace.Workspace, j *job, parentSequence uint64, run string) tools.Result {
	if checkName("run", run) != nil {
		return tools.Failed("run must be the id of a run.")
	}
	folder := s.worktrees.folder(j.namespace, run)
	unlock, err := s.worktrees.lock(ctx, folder)
	if err != nil {
		return tools.Result{Interrupted: true}
	}
	defer unlock()
	record, err := s.worktrees.read(folder)
	switch {
	case err != nil:
		return tools.Failed("The worktree cannot be read: " + workspace.Reason(err) + ".")
	case record == nil || record.Namespace != j.namespace || record.Run != run || record.Parent != j.runID || record.ParentSequence != parentSequence:
		return tools.Failed(fmt.Sprintf("There is no worktree of a run %s that a call of this run started. "+
			"The result of a sub-agent's call names its run.", toolhost.PlainName(run)))
	}
	if r, again := record.Merged[j.id]; again {
		return tools.Result{Text: r.Text, Changed: r.Changed}
	}
	switch {
	case !record.Ended:
		return tools.Failed("Nothing was merged: run " + run + " has not ended. Wait for its end.")
	case !exists(filepath.Join(folder, worktreeFiles)):
		return tools.Result{Text: toolhost.MergeText(run, nil, nil, nil)}
	case filepath.Clean(w.Dir) != record.Workspace:
		return tools.Failed("Nothing was merged: this run works in another workspace by now.")
	}
	m := &merge{s: s, w: w, folder: folder, record: record}
	result, err := m.run(ctx, j.id)
	switch {
	case ctx.Err() != nil && err != nil:
		return tools.Result{Interrupted: true}
	case err != nil:
		s.log.Warn("merge of a worktree failed", "namespace", j.namespace, "run", run, "error", err)
		return tools.Failed("Nothing was merged: " + workspace.Reason(err) + ".")
	}
	return result
}

// merge is one merge of a worktree. It is locked.
type merge struct {
	s      *Server
	w      *workspace.Workspace
	folder string
	record *worktreeRecord

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

func (m *merge) run(ctx context.Context, call string) (tools.Result, error) {
	base, theirs, _, err := m.s.changesOf(ctx, m.folder)
	if err != nil {
		return tools.Result{}, err
	}
	if m.theirs, err = openTree(ctx, filepath.Join(m.folder, worktreeFiles)); err != nil {
		return tools.Result{}, err
	}
	defer m.theirs.close()
	if m.ours, err = openTree(ctx, m.record.Workspace); err != nil {
		return tools.Result{}, err
	}
	defer m.ours.close()
	stray, err := m.s.strayRefs(ctx, m.folder)
	if err != nil {
		return tools.Result{}, err
	}
	m.base = base
	stage := filepath.Join(m.folder, worktreeMerge)
	if err := errors.Join(os.RemoveAll(stage), os.Mkdir(stage, 0o700)); err != nil {
		return tools.Result{}, err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	paths := toolhost.ChangedPaths(base, theirs)
	if paths, err = m.withoutIgnored(ctx, paths, base); err != nil {
		return tools.Result{}, err
	}
	for _, name := range paths {
		if ctx.Err() != nil {
			return tools.Result{}, context.Cause(ctx)
		}
		if err := m.decide(ctx, stage, name, base[name], theirs); err != nil {
			return tools.Result{}, err
		}
	}
	switch {
	case len(m.refused) > 0:
		return tools.Failed("Nothing was merged, because the work changes places that need a person's approval: " + toolhost.JoinSome(m.refused) +
			". Ask the user to change them, or have the sub-agent undo these changes."), nil
	case len(m.conflicts) > 0:
		return tools.Failed("Nothing was merged. These files conflict with changes in the workspace: " + toolhost.JoinSome(m.conflicts) +
			". Make their changes yourself or have a sub-agent do so on the present files; then merge again."), nil
	}
	result, conflict, err := m.apply(call, stage, stray)
	if conflict != "" {
		return tools.Failed("Nothing was merged. " + toolhost.PlainName(conflict) + " changed or could not be written during the merge."), nil
	}
	if err != nil {
		return tools.Result{}, err
	}
	if len(stray) == 0 {
		if err := m.s.dropFiles(m.folder); err != nil {
			m.s.log.Warn("a merged worktree cannot be removed", "folder", m.folder, "error", err)
		}
	}
	return result, nil
}

// withoutIgnored leaves out added files that rules of the repository above the workspace ignore: the worktree
// does not have these rules.
func (m *merge) withoutIgnored(ctx context.Context, paths []string, base map[string]toolhost.TreeFile) ([]string, error) {
	r, err := findRepository(m.record.Workspace)
	if err != nil || !r.exists || r.root == r.workspace {
		return paths, nil //nolint:nilerr // there are no such rules
	}
	var asked strings.Builder
	for _, name := range paths {
		if base[name].Mode == toolhost.NoFile {
			asked.WriteString(name + "\x00")
		}
	}
	output := &limitedBuffer{limit: worktreeListBytes}
	err = m.s.withSubstitute(r, func(git string, environ []string) error {
		options := slices.DeleteFunc(toolhost.GitOptions(), func(o string) bool { return o == "--literal-pathspecs" })
		err := m.s.runGit(ctx, gitRun{
			program: git, dir: r.workspace, environ: environ, arguments: append(options, "check-ignore", "-z", "--stdin"),
			input: strings.NewReader(asked.String()), output: output,
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
	if below(filepath.Join(m.record.Workspace, name), append([]string{m.s.confiner.data}, withoutLinks(m.s.config.Secrets)...)) {
		m.refused = append(m.refused, toolhost.PlainName(name)+" belongs to the harness")
		return nil
	}
	if err := m.w.Refuse(name, name); err != nil {
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
