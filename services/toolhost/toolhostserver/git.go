package toolhostserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

const (
	// gitTime is how long git may take.
	gitTime = 2 * time.Second
	// gitOutput is what is read of its output, bytes.
	gitOutput = 8 << 20
	// gitFile bounds the small files of a repository that are read here, bytes.
	gitFile = 1 << 20
	// gitPrefix begins the names of folders that stand in for a repository's own.
	gitPrefix = "git-"
)

// gitChanges are the paths below the workspace that git status names, relative to
// the workspace.
//
// A repository is not trusted: its configuration names programs that git status
// would run (core.fsmonitor, the clean filters of .gitattributes, hooks, what a
// partial clone fetches with, and the same in submodules). So git gets a folder
// of ours in the place of the repository's, with links to the files that say what
// is stored (objects, refs, index, excludes), and with a configuration of ours.
// So set up it starts no other program, and needs no supervisor; one that a host
// leaves behind carries its mark, by which the next one kills it.
func (s *Server) gitChanges(ctx context.Context, r repository) ([]string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	if git, err = filepath.EvalSymlinks(git); err != nil {
		return nil, err
	}
	if _, inside := within(r.root, git); inside {
		return nil, fmt.Errorf("%s lies in the repository itself", git)
	}
	ctx, release := context.WithTimeoutCause(ctx, gitTime, errTimedOut)
	defer release()
	state, err := filepath.Abs(s.config.Dir)
	if err != nil {
		return nil, err
	}
	stand, err := os.MkdirTemp(state, gitPrefix)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(stand) }()
	environ, err := standIn(r.root, stand)
	if err != nil {
		return nil, err
	}
	output := &bounded{limit: gitOutput}
	cmd := exec.CommandContext(ctx, git, toolhost.GitStatus()...)
	cmd.Dir, cmd.Env, cmd.Stdout = r.workspace, append(environ, markVariable+"="+s.life.mark()), output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drainTime
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git status: %w", cmp.Or(context.Cause(ctx), err))
	}
	return s.below(r, toolhost.ParseGitStatus(output.String(), filepath.ToSlash(relative(r.root, r.workspace)))), nil
}

// below leaves out what is the tool host's own: its ledger may lie in the
// workspace.
func (s *Server) below(r repository, paths []string) []string {
	dir, err := filepath.EvalSymlinks(s.config.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	own, inside := within(r.workspace, dir)
	if err != nil || !inside {
		return paths
	}
	kept := paths[:0]
	for _, path := range paths {
		if !strings.HasPrefix(path, own+"/") {
			kept = append(kept, path)
		}
	}
	return kept
}

// standIn fills a folder that stands in for a repository's own and returns git's
// environment with it.
func standIn(root, stand string) ([]string, error) {
	folder := filepath.Join(root, ".git")
	if content, err := readSmall(folder, 4<<10); err == nil {
		target := toolhost.GitFolder(content)
		if target == "" {
			return nil, errors.New(".git is neither a folder nor names one")
		}
		folder = absolute(root, target)
	}
	common := folder // a linked worktree shares what is stored
	if content, err := readSmall(filepath.Join(folder, "commondir"), 4<<10); err == nil {
		common = absolute(folder, strings.TrimSpace(content))
	}
	head, err := readSmall(filepath.Join(folder, "HEAD"), 4<<10)
	if err != nil {
		return nil, err
	}
	theirs, err := readSmall(filepath.Join(common, "config"), gitFile)
	if err != nil {
		return nil, err
	}
	ours, err := toolhost.GitConfig(theirs)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(stand, "HEAD"), []byte(head), 0o600),
		os.WriteFile(filepath.Join(stand, "config"), []byte(ours), 0o600),
		os.Symlink(filepath.Join(common, "refs"), filepath.Join(stand, "refs")),
		os.Symlink(filepath.Join(common, "packed-refs"), filepath.Join(stand, "packed-refs")),
		os.Symlink(filepath.Join(common, "info"), filepath.Join(stand, "info")),
	); err != nil {
		return nil, err
	}
	// A split index lies beside the one that refers to it.
	shared, _ := filepath.Glob(filepath.Join(folder, "sharedindex.*"))
	for _, path := range shared[:min(len(shared), 64)] {
		if err := os.Symlink(path, filepath.Join(stand, filepath.Base(path))); err != nil {
			return nil, err
		}
	}
	return append(toolhost.GitEnvironment(),
		"PATH="+os.Getenv("PATH"), "GIT_DIR="+stand, "GIT_WORK_TREE="+root,
		"GIT_INDEX_FILE="+filepath.Join(folder, "index"), "GIT_OBJECT_DIRECTORY="+filepath.Join(common, "objects"),
	), nil
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// within says whether a path is a folder or lies below it, and its name there.
func within(folder, path string) (string, bool) {
	rel := relative(folder, path)
	return rel, filepath.IsLocal(rel)
}

// relative is the name of one path seen from another; both are absolute.
func relative(from, path string) string {
	rel, err := filepath.Rel(from, path)
	if err != nil {
		return path
	}
	return rel
}

// removeStandIns removes what a host that was killed has left behind.
func removeStandIns(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, gitPrefix+"*"))
	for _, path := range left {
		_ = os.RemoveAll(path)
	}
}

// bounded keeps the first limit bytes of what is written to it and takes all.
type bounded struct {
	bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.limit-b.Len()))])
	return len(p), nil
}
