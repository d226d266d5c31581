package toolhostserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
)

const (
	// gitTimeout is how long git may take, and gitDrainTimeout how long its output may
	// be read after that.
	gitTimeout      = 2 * time.Second
	gitDrainTimeout = 500 * time.Millisecond
	// gitOutputBytes is the part of git's output that is read.
	gitOutputBytes = 8 << 20
	// gitFileBytes is the maximum size of a repository's configuration.
	gitFileBytes = 1 << 20
	// gitLineBytes is the maximum size of a repository's files with one line.
	gitLineBytes = 4 << 10
	// substitutePrefix begins the names of folders that git uses instead of .git.
	substitutePrefix = "git-"
)

// gitChanges returns the paths that git status names, relative to the workspace and only
// below it.
//
// A repository is not trusted: its configuration can name programs that git status would
// run (core.fsmonitor, clean filters, hooks, the transport of a partial clone, and the
// same in submodules). So git uses a substitute for .git, with links to the files
// that show what is stored (objects, refs, index, excludes) and a configuration of the
// tool host. Then it starts no program and needs no supervisor. If a host dies before its
// git, the next host finds that by its mark and kills it.
func (s *Server) gitChanges(ctx context.Context, r repository) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, errTimeout)
	defer cancel()
	output := &limitedBuffer{limit: gitOutputBytes}
	err := s.withSubstitute(r, func(git string, environ []string) error {
		return s.runGit(ctx, gitRun{program: git, dir: r.workspace, environ: environ, arguments: toolhost.GitStatus(), output: output})
	})
	if err != nil {
		return nil, err
	}
	return s.withoutOwnFiles(r, toolhost.ParseGitStatus(output.String(), filepath.ToSlash(relative(r.root, r.workspace)))), nil
}

// withSubstitute calls a function with the path of git and an environment in which git
// works on a repository by a substitute for its .git.
func (s *Server) withSubstitute(r repository, f func(git string, environ []string) error) error {
	git, err := findGit(r.root)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(s.config.Dir)
	if err != nil {
		return err
	}
	substitute, err := os.MkdirTemp(dir, substitutePrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(substitute) }()
	environ, err := fillSubstitute(r.root, substitute)
	if err != nil {
		return err
	}
	return f(git, environ)
}

// findGit returns the path of git, which is not inside a repository.
func findGit(root string) (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", err
	}
	if git, err = filepath.EvalSymlinks(git); err != nil {
		return "", err
	}
	if _, inside := within(root, git); inside {
		return "", fmt.Errorf("git program %s is inside the repository", git)
	}
	return git, nil
}

// gitRun is one run of git.
type gitRun struct {
	program, dir       string
	environ, arguments []string
	input              io.Reader
	output             io.Writer
}

// runGit runs git with the mark of this host's processes, and kills it when ctx ends. The error has what git printed about it.
func (s *Server) runGit(ctx context.Context, g gitRun) error {
	var problem limitedBuffer
	problem.limit = gitLineBytes
	cmd := exec.CommandContext(ctx, g.program, g.arguments...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = g.dir, append(g.environ, command.MarkVariable+"="+s.instance.newMark()), g.input, g.output, &problem
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = gitDrainTimeout
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("git %s: %w: %s", g.name(), err, strings.Join(strings.Fields(problem.String()), " "))
}

// name returns the subcommand.
func (g gitRun) name() string {
	for i, a := range g.arguments {
		if !strings.HasPrefix(a, "-") && (i == 0 || g.arguments[i-1] != "-c") {
			return a
		}
	}
	return ""
}

// withoutOwnFiles removes the harness's own files, whose folder may be in the workspace.
func (s *Server) withoutOwnFiles(r repository, paths []string) []string {
	own, inside := within(r.workspace, s.confiner.data)
	if !inside {
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

// fillSubstitute makes a folder usable as .git of a repository and returns git's environment
// with it.
func fillSubstitute(root, substitute string) ([]string, error) {
	folder, common, err := gitFolder(root)
	if err != nil {
		return nil, err
	}
	head, err := readSmall(filepath.Join(folder, "HEAD"), gitLineBytes)
	if err != nil {
		return nil, err
	}
	theirs, err := readSmall(filepath.Join(common, "config"), gitFileBytes)
	if err != nil {
		return nil, err
	}
	config, err := toolhost.GitConfig(theirs)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(substitute, "HEAD"), []byte(head), 0o600),
		os.WriteFile(filepath.Join(substitute, "config"), []byte(config), 0o600),
		os.Symlink(filepath.Join(common, "refs"), filepath.Join(substitute, "refs")),
		os.Symlink(filepath.Join(common, "packed-refs"), filepath.Join(substitute, "packed-refs")),
		os.Symlink(filepath.Join(common, "info"), filepath.Join(substitute, "info")),
	); err != nil {
		return nil, err
	}
	// A split index is in the same folder as the index that refers to it.
	shared, _ := filepath.Glob(filepath.Join(folder, "sharedindex.*"))
	for _, path := range shared[:min(len(shared), 64)] {
		if err := os.Symlink(path, filepath.Join(substitute, filepath.Base(path))); err != nil {
			return nil, err
		}
	}
	return append(toolhost.GitEnvironment(),
		"PATH="+os.Getenv("PATH"), "GIT_DIR="+substitute, "GIT_WORK_TREE="+root,
		"GIT_INDEX_FILE="+filepath.Join(folder, "index"), "GIT_OBJECT_DIRECTORY="+filepath.Join(common, "objects"),
	), nil
}

// gitFolder returns the git folder of a repository, and the one with what is stored, which linked
// worktrees share.
func gitFolder(root string) (folder, common string, err error) {
	folder = filepath.Join(root, ".git")
	if content, err := readSmall(folder, gitLineBytes); err == nil {
		target := toolhost.GitFolder(content)
		if target == "" {
			return "", "", errors.New(".git is neither a folder nor a file that names one")
		}
		folder = absolute(root, target)
	}
	common = folder
	if content, err := readSmall(filepath.Join(folder, "commondir"), gitLineBytes); err == nil {
		common = absolute(folder, strings.TrimSpace(content))
	}
	return folder, common, nil
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// within reports whether a path is a folder or below it, and returns its name there.
func within(folder, path string) (string, bool) {
	rel := relative(folder, path)
	return rel, filepath.IsLocal(rel)
}

// relative returns an absolute path relative to another absolute path.
func relative(from, path string) string {
	rel, err := filepath.Rel(from, path)
	if err != nil {
		return path
	}
	return rel
}

// removeSubstitutes removes the folders that a killed host left behind.
func removeSubstitutes(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, substitutePrefix+"*"))
	for _, path := range left {
		_ = os.RemoveAll(path)
	}
}

// limitedBuffer keeps the first limit bytes of what is written to it. Write never fails.
type limitedBuffer struct {
	bytes.Buffer
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.limit-b.Len()))])
	return len(p), nil
}
