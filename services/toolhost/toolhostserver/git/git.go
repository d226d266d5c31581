// Package git runs git for the tool host on repositories that it does not trust.
//
// A repository's own configuration can name programs that git would run (core.fsmonitor, clean
// filters, hooks, the transport of a partial clone, and the same in submodules). So git uses a
// substitute for .git, with links to the files that show what is stored (objects, refs, index,
// excludes) and a configuration of the tool host. Then it starts no program and needs no
// supervisor. If a host dies before its git, the next host finds that by its mark and kills it.
//
// A Git has no state that changes. Errors are those of files and of git, with what git printed;
// the end of ctx kills git, and its cause is the error.
package git

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
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

const (
	// timeout is how long git may take, and drainTimeout how long its output may
	// be read after that.
	timeout      = 2 * time.Second
	drainTimeout = 500 * time.Millisecond
	// OutputBytes is the part of git's output that is read.
	OutputBytes = 8 << 20
	// FileBytes is the maximum size of a repository's configuration.
	FileBytes = 1 << 20
	// LineBytes is the maximum size of a repository's files with one line.
	LineBytes = 4 << 10
	// substitutePrefix begins the names of folders that git uses instead of .git.
	substitutePrefix = "git-"
)

// errTimeout is the cause of the end of a git that takes too long.
var errTimeout = errors.New("git took too long")

// Config configures a Git.
type Config struct {
	// Dir is the folder of the host, in which substitutes are made.
	Dir string
	// Data is the harness's folder for data, without links. Its files are no changes.
	Data string
	// Mark returns the variable, NAME=VALUE, by which the next host finds a process of this one.
	Mark func() string
}

// Git runs git. Many goroutines may use it.
type Git struct{ config Config }

// New returns a Git, and removes the substitutes that a killed host left behind.
func New(config Config) *Git {
	left, _ := filepath.Glob(filepath.Join(config.Dir, substitutePrefix+"*"))
	for _, path := range left {
		_ = os.RemoveAll(path)
	}
	return &Git{config: config}
}

// Changes returns the paths that git status names, relative to the workspace and only
// below it. It fails after two seconds.
func (g *Git) Changes(ctx context.Context, r Repository) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	output := &Output{Limit: OutputBytes}
	err := g.WithSubstitute(r, func(program string, environ []string) error {
		return g.Run(ctx, Run{Program: program, Dir: r.Workspace, Environ: environ, Arguments: toolhost.GitStatus(), Output: output})
	})
	if err != nil {
		return nil, err
	}
	return g.withoutOwnFiles(r, toolhost.ParseGitStatus(output.String(), filepath.ToSlash(disk.Relative(r.Root, r.Workspace)))), nil
}

// WithSubstitute calls a function with the path of git and an environment in which git
// works on a repository by a substitute for its .git.
func (g *Git) WithSubstitute(r Repository, f func(program string, environ []string) error) error {
	program, err := Program(r.Root)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(g.config.Dir)
	if err != nil {
		return err
	}
	substitute, err := os.MkdirTemp(dir, substitutePrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(substitute) }()
	environ, err := fillSubstitute(r.Root, substitute)
	if err != nil {
		return err
	}
	return f(program, environ)
}

// Program returns the path of git, which is not inside a repository.
func Program(root string) (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", err
	}
	if git, err = filepath.EvalSymlinks(git); err != nil {
		return "", err
	}
	if _, inside := disk.Within(root, git); inside {
		return "", fmt.Errorf("git program %s is inside the repository", git)
	}
	return git, nil
}

// Run is one run of git.
type Run struct {
	// Program is git, Dir the folder in which it runs.
	Program, Dir       string
	Environ, Arguments []string
	Input              io.Reader
	Output             io.Writer
}

// Run runs git with the mark of this host's processes, and kills it when ctx ends. The error has what git printed about it.
func (g *Git) Run(ctx context.Context, r Run) error {
	problem := Output{Limit: LineBytes}
	cmd := exec.CommandContext(ctx, r.Program, r.Arguments...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Dir, append(r.Environ, g.config.Mark()), r.Input, r.Output, &problem
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drainTimeout
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("git %s: %w: %s", r.name(), err, strings.Join(strings.Fields(problem.String()), " "))
}

// name returns the subcommand.
func (r Run) name() string {
	for i, a := range r.Arguments {
		if !strings.HasPrefix(a, "-") && (i == 0 || r.Arguments[i-1] != "-c") {
			return a
		}
	}
	return ""
}

// withoutOwnFiles removes the harness's own files, whose folder may be in the workspace.
func (g *Git) withoutOwnFiles(r Repository, paths []string) []string {
	own, inside := disk.Within(r.Workspace, g.config.Data)
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
	folder, common, err := Folder(root)
	if err != nil {
		return nil, err
	}
	head, err := disk.ReadSmall(filepath.Join(folder, "HEAD"), LineBytes)
	if err != nil {
		return nil, err
	}
	theirs, err := disk.ReadSmall(filepath.Join(common, "config"), FileBytes)
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

// Folder returns the git folder of a repository, and the one with its objects and refs, which
// linked worktrees share.
func Folder(root string) (folder, common string, err error) {
	folder = filepath.Join(root, ".git")
	if content, err := disk.ReadSmall(folder, LineBytes); err == nil {
		target := toolhost.GitFolder(content)
		if target == "" {
			return "", "", errors.New(".git is neither a folder nor a file that names one")
		}
		folder = absolute(root, target)
	}
	common = folder
	if content, err := disk.ReadSmall(filepath.Join(folder, "commondir"), LineBytes); err == nil {
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

// Output keeps the first Limit bytes that are written to it. Write never fails.
type Output struct {
	bytes.Buffer
	Limit int
}

func (b *Output) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.Limit-b.Len()))])
	return len(p), nil
}
