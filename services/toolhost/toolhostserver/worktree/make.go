package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

const (
	// worktreeListBytes bounds the list of the files of a workspace.
	worktreeListBytes = 64 << 20
	// worktreeBytes bounds the files of a worktree.
	worktreeBytes = 8 << 30
)

// worktreeRef names the commit with which a worktree was made, in the worktree.
const worktreeRef = "refs/harness/base"

// rawAttributes are attributes that override those of the files: git stores and writes every file
// unchanged, without programs and without changes of line ends.
const rawAttributes = "* -text !eol -crlf -ident -filter !working-tree-encoding\n"

// unfinished are the files of a git folder while git waits for a user, with what it does.
var unfinished = map[string]string{
	"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
	"rebase-merge": "rebase", "rebase-apply": "rebase",
}

// listing is what git lists of a workspace.
type listing struct {
	names      []string // of files, tracked or not ignored, sorted
	submodules []toolhost.TrackedFile
	nested     []string // folders that are nested repositories
	head       string   // the commit; empty for none
}

// list lists the files of a workspace. The error is a Problem if they cannot be known.
func (t *Worktrees) list(ctx context.Context, r git.Repository) (l listing, err error) {
	err = t.config.Git.WithSubstitute(r, func(program string, environ []string) error {
		run := func(arguments ...string) (string, error) {
			output := &git.Output{Limit: worktreeListBytes}
			err := t.config.Git.Run(ctx, git.Run{Program: program, Dir: r.Workspace, Environ: environ, Arguments: append(toolhost.GitOptions(), arguments...), Output: output})
			if output.Len() == worktreeListBytes {
				err = Problem("the repository has too many files for a worktree")
			}
			return output.String(), err
		}
		tracked, err := run("ls-files", "--stage", "-z", "--", ".")
		if err != nil {
			return err
		}
		others, err := run("ls-files", "--others", "--exclude-standard", "-z", "--", ".")
		if err != nil {
			return err
		}
		own := git.OwnsIndex(r.Root)
		for _, f := range toolhost.ParseTracked(tracked) {
			switch {
			case f.Unmerged && !own:
				return Problem("it has conflicts that are not resolved: resolve them first")
			case f.Mode == toolhost.Submodule && !own: // the workspace need not have what its index names
			case f.Unmerged:
				return Problem(fmt.Sprintf("%s has conflicts that are not resolved: resolve them first", toolhost.PlainName(f.Path)))
			case f.Mode == toolhost.Submodule:
				l.submodules = append(l.submodules, f)
			default:
				l.names = append(l.names, f.Path)
			}
		}
		for name := range strings.SplitSeq(others, "\x00") {
			if folder, nested := strings.CutSuffix(name, "/"); nested {
				l.nested = append(l.nested, folder)
			} else if toolhost.IsTreePath(name) {
				l.names = append(l.names, name)
			}
		}
		slices.Sort(l.names)
		l.names = slices.Compact(l.names)
		if head, err := run("rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err == nil {
			l.head = strings.TrimSpace(head)
		}
		return nil
	})
	return l, err
}

// origin is the repository from which a worktree is made.
type origin struct {
	git.Repository
	config string // of the worktree
	// history reports that the worktree can have the history of the repository, whose objects
	// are in these folders.
	history bool
	objects []string
	shallow string
	exclude string
}

// findOrigin checks that a worktree can be made from a workspace.
func (t *Worktrees) findOrigin(dir string) (o origin, err error) {
	if o.Repository, err = git.Find(dir); err != nil {
		return o, Problem("the workspace cannot be opened")
	}
	switch {
	case !o.Exists && disk.Exists(filepath.Join(o.Workspace, "HEAD")) && disk.Exists(filepath.Join(o.Workspace, "objects")) && disk.Exists(filepath.Join(o.Workspace, "refs")):
		return o, Problem("the workspace is a bare git repository, without files: a worktree needs one with files")
	case !o.Exists:
		return o, Problem("the workspace is in no git repository: a worktree needs one; make it with git init, or let the sub-agent work in the shared workspace")
	}
	folder, common, err := git.Folder(o.Root)
	if err != nil {
		return o, Problem("its git repository cannot be read: " + err.Error())
	}
	for name, what := range unfinished {
		if disk.Exists(filepath.Join(folder, name)) {
			return o, Problem(fmt.Sprintf("a git %s is not finished in the workspace: finish it, or abort it with git %s --abort", what, what))
		}
	}
	theirs, err := disk.ReadSmall(filepath.Join(common, "config"), git.FileBytes)
	if err != nil {
		return o, Problem("its git configuration cannot be read")
	}
	settings, err := gitguard.ParseConfig([]byte(theirs))
	if err != nil {
		return o, Problem("its git configuration cannot be read")
	}
	for _, setting := range settings {
		if setting.Key == "core.bare" && slices.Contains([]string{"true", "yes", "on", "1", ""}, strings.ToLower(setting.Value)) {
			return o, Problem("its git repository is bare (core.bare): a worktree needs one with files")
		}
	}
	if o.config, err = toolhost.GitConfig(theirs); err != nil {
		return o, Problem(err.Error())
	}
	if !git.Owns(o.Root, common) {
		return o, nil
	}
	// A command of a run can make each of these files a link, and the worktree shows what they have.
	o.exclude, _ = disk.ReadSmallIn(common, "info/exclude", git.FileBytes)
	o.shallow, _ = disk.ReadSmallIn(common, "shallow", git.FileBytes)
	o.findHistory(common, t.Objects(o.Workspace))
	return o, nil
}

// findHistory decides whether the worktree has the history of the repository: its objects are where
// they belong, and all of them. known are those of a workspace that is a worktree itself.
func (o *origin) findHistory(common string, known []string) {
	objects := filepath.Join(common, "objects")
	resolved, err := filepath.EvalSymlinks(objects)
	if err != nil || resolved != objects || o.Root != o.Workspace || strings.ContainsAny(objects, "\n\"") {
		return
	}
	if disk.Exists(filepath.Join(objects, "info", "alternates")) && len(known) == 0 {
		return // of another repository, which the run must not see
	}
	o.history, o.objects = true, append([]string{objects}, known...)
}

// fillWorktree makes the files of a worktree unless they are there. It is locked.
func (t *Worktrees) fillWorktree(ctx context.Context, folder string, record *treeRecord) error {
	if disk.Exists(filepath.Join(folder, worktreeFiles)) {
		t.setUsed(folder, true)
		return nil
	}
	o, err := t.findOrigin(record.Workspace)
	if err != nil {
		return err
	}
	made := filepath.Join(folder, worktreeNew+disk.RandomName(4))
	defer disk.RemoveAll(made)
	files := filepath.Join(made, worktreeFiles)
	if err := os.MkdirAll(files, 0o700); err != nil {
		return err
	}
	l, err := t.list(ctx, o.Repository)
	if err != nil {
		return err
	}
	copied, err := t.copyFiles(ctx, o, l, files, record.Hidden)
	if err != nil {
		return err
	}
	if record.Commit, err = t.commitFiles(ctx, o, l, files, copied); err != nil {
		return err
	}
	record.Objects = o.objects
	if err := t.store(folder, record); err != nil {
		return err
	}
	if err := disk.Replace(filepath.Join(folder, worktreeBase), []byte(toolhost.FormatTree(copied))); err != nil {
		return err
	}
	failpoint.Hit(role, "worktree_copied")
	if err := os.Rename(files, filepath.Join(folder, worktreeFiles)); err != nil {
		return err
	}
	failpoint.Hit(role, "worktree_made")
	t.setUsed(folder, true)
	return nil
}

// copyFiles copies the files of a workspace that git lists, without those of the harness and
// those that are hidden from commands.
func (t *Worktrees) copyFiles(ctx context.Context, o origin, l listing, to string, hidden []string) (map[string]toolhost.TreeFile, error) {
	private := t.private()
	for _, at := range hidden {
		if !filepath.IsAbs(at) {
			at = filepath.Join(o.Workspace, at)
		}
		private = append(private, at)
	}
	from, err := openTree(ctx, o.Workspace)
	if err != nil {
		return nil, err
	}
	defer from.close()
	target, err := openTree(ctx, to)
	if err != nil {
		return nil, err
	}
	defer target.close()
	copied := make(map[string]toolhost.TreeFile, len(l.names))
	left := int64(worktreeBytes)
	for _, name := range l.names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if below(filepath.Join(o.Workspace, name), private) {
			continue
		}
		if _, info, err := from.mode(name); err == nil && info != nil {
			left -= info.Size()
		}
		if left < 0 {
			return nil, Problem(fmt.Sprintf("its files have more than %d GiB: name large ones in .gitignore", worktreeBytes>>30))
		}
		f, err := target.copyFrom(from, name)
		if err != nil && ctx.Err() == nil {
			return nil, Problem(fmt.Sprintf("%s cannot be copied: %s", toolhost.PlainName(name), disk.Reason(err)))
		}
		if err != nil {
			return nil, err
		}
		if f.Mode != toolhost.NoFile {
			copied[name] = f
		}
	}
	for _, m := range l.submodules {
		if err := target.root.MkdirAll(m.Path, 0o777); err != nil {
			return nil, err
		}
	}
	return copied, nil
}

// commitFiles makes the repository of a worktree, with a commit of its files.
func (t *Worktrees) commitFiles(ctx context.Context, o origin, l listing, files string, copied map[string]toolhost.TreeFile) (string, error) {
	program, err := git.Program(o.Root)
	if err != nil {
		return "", Problem("the machine of the tool host has no git")
	}
	folder := filepath.Join(files, ".git")
	content := map[string]string{
		"HEAD": "ref: " + worktreeRef + "\n", "config": o.config + "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
		"info/attributes": rawAttributes, "info/exclude": o.exclude,
	}
	if o.history {
		content["objects/info/alternates"] = o.objects[0] + "\n"
	}
	if o.history && o.shallow != "" {
		content["shallow"] = o.shallow
	}
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o700); err != nil {
			return "", err
		}
	}
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	environ := append(toolhost.GitEnvironment(), "PATH="+os.Getenv("PATH"), "GIT_DIR="+folder, "GIT_WORK_TREE="+files)
	run := func(input io.Reader, arguments ...string) error {
		return t.config.Git.Run(ctx, git.Run{
			Program: program, Dir: files, Environ: slices.Clip(environ), Arguments: append(toolhost.GitOptions(), arguments...), Input: input, Output: io.Discard,
		})
	}
	parent := ""
	if o.history {
		parent = l.head
	}
	stream, writer := io.Pipe()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_ = writer.CloseWithError(writeImport(ctx, writer, files, parent, copied, l.submodules))
	}()
	err = run(stream, "-c", "fastimport.unpackLimit=0", "-c", "pack.compression=1", "fast-import", "--quiet", "--done", "--depth=0")
	_ = stream.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	<-wrote
	if err != nil {
		return "", err
	}
	commit, err := disk.ReadSmall(filepath.Join(folder, worktreeRef), git.LineBytes)
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(commit)
	if err := os.WriteFile(filepath.Join(folder, "HEAD"), []byte(commit+"\n"), 0o600); err != nil {
		return "", err
	}
	if err := run(nil, "read-tree", commit); err != nil {
		return "", err
	}
	return commit, run(nil, "update-index", "-q", "--refresh")
}

// writeImport writes a commit of files for git fast-import.
func writeImport(ctx context.Context, to io.Writer, dir, parent string, files map[string]toolhost.TreeFile, submodules []toolhost.TrackedFile) error {
	tree, err := openTree(ctx, dir)
	if err != nil {
		return err
	}
	defer tree.close()
	b := bufio.NewWriterSize(to, 1<<16)
	const message = "Files of the parent as they are"
	_, _ = fmt.Fprintf(b, "commit %s\ncommitter harnessmesh <harnessmesh@localhost> %d +0000\ndata %d\n%s\n", worktreeRef, time.Now().Unix(), len(message), message)
	if parent != "" {
		_, _ = fmt.Fprintf(b, "from %s\n", parent)
	}
	_, _ = b.WriteString("deleteall\n")
	for name, f := range files {
		_, _ = fmt.Fprintf(b, "M %s inline %s\ndata %d\n", f.Mode, importName(name), f.Size)
		if _, err := tree.read(name, b); err != nil {
			return err
		}
		_ = b.WriteByte('\n')
	}
	for _, m := range submodules {
		_, _ = fmt.Fprintf(b, "M %s %s %s\n", m.Mode, m.Object, importName(m.Path))
	}
	_, _ = b.WriteString("done\n")
	return b.Flush()
}

// importName quotes a path for git fast-import.
func importName(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
