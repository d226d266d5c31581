// Package worktree makes the worktrees in which sub-agents work, compares them, merges them into
// the workspace of the run that started them, and removes them.
//
// A worktree is a copy of the files that git lists of the parent's workspace, with a repository
// of its files. One operation at a time uses a worktree. A merge is all or nothing: its journal
// is on disk before the first change, and Sweep undoes a merge that an earlier host has not
// recorded. A worktree is removed only if nothing in it would be lost.
//
// A Problem is the error for a workspace that can have no worktree. Every other error means that
// the request may be sent again.
package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

const (
	// Limit bounds the time in which a worktree is made, compared or removed.
	Limit = 10 * time.Minute
	// Names in the folder of a worktree.
	worktreeFiles = "files" // the workspace of the run
	worktreeBase  = "base"  // what it was made with
	worktreeFacts = "facts" // a record
	worktreeMerge = "merge" // a merge that has begun
	// Prefixes of folders that are not complete, or about to be removed.
	worktreeNew     = "new-"
	worktreeRemoved = "removed-"
)

// role is the name of the tool host at failpoints.
const role = workflow.ToolHost

// Config configures Worktrees. Dir and Git are required.
type Config struct {
	// Dir is the folder of the worktrees, absolute and without links.
	Dir string
	// Data is the harness's folder for data, without links, and Secrets are files of the harness:
	// no worktree has a copy of them, and no merge changes them.
	Data    string
	Secrets []string
	// Git runs git.
	Git Git
	// Busy reports whether a call runs in a workspace.
	Busy func(workspace string) bool
	// Sync has merged files on disk when a merge returns.
	Sync   bool
	Logger *slog.Logger
}

// Git runs git on a repository by a substitute for its .git, or with an environment of the caller.
type Git interface {
	WithSubstitute(r git.Repository, f func(program string, environ []string) error) error
	Run(ctx context.Context, r git.Run) error
}

// Worktrees are the worktrees of a host: a folder for each run, which is bound to it by the file facts.
// A worktree exists if its files do, which are put there in one step and last. Many goroutines may use it.
type Worktrees struct {
	config Config

	mu    sync.Mutex
	locks map[string]chan struct{}
	// used has the folders whose runs have not ended and whose files exist.
	used map[string]bool
}

// treeRecord is what a host knows of a worktree.
type treeRecord struct {
	Namespace      string   `json:"namespace"`
	Run            string   `json:"run"`
	Parent         string   `json:"parent"`
	ParentSequence uint64   `json:"parent_sequence"`
	Root           string   `json:"root"`
	Workspace      string   `json:"workspace"` // of the parent
	Hidden         []string `json:"hidden,omitempty"`
	// Objects are the folders outside of the worktree in which git finds its objects.
	Objects []string `json:"objects,omitempty"`
	// Commit has the files with which the worktree was made.
	Commit string `json:"commit,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	// Merged are the results of the calls that have merged it. The last one has the id Merge.
	Merged map[string]mergeResult `json:"merged,omitempty"`
	Merge  string                 `json:"merge,omitempty"`
}

type mergeResult struct {
	Text    string   `json:"text"`
	Changed []string `json:"changed,omitempty"`
}

// Problem is why a workspace can have no worktree.
type Problem string

func (p Problem) Error() string { return string(p) }

// New returns the worktrees in a folder. It changes nothing: Sweep does.
func New(config Config) *Worktrees {
	return &Worktrees{config: config, locks: map[string]chan struct{}{}, used: map[string]bool{}}
}

// private returns the paths of the harness.
func (t *Worktrees) private() []string {
	return append([]string{t.config.Data}, disk.WithoutLinks(t.config.Secrets)...)
}

// folder returns the folder of a run's worktree.
func (t *Worktrees) folder(namespace, run string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + run))
	return filepath.Join(t.config.Dir, hex.EncodeToString(sum[:8]))
}

// folderOf returns the folder of the worktree that a workspace is; empty if it is none.
func (t *Worktrees) folderOf(dir string) string {
	if dir = filepath.Clean(dir); filepath.Base(dir) != worktreeFiles || filepath.Dir(filepath.Dir(dir)) != t.config.Dir {
		return ""
	}
	return filepath.Dir(dir)
}

// Has reports whether a path is that of the files of a worktree that this host has made.
func (t *Worktrees) Has(dir string) bool {
	folder := t.folderOf(dir)
	if folder == "" {
		return false
	}
	r, err := t.read(folder)
	return r != nil && err == nil
}

// lock locks a worktree until unlock is called, or returns the cause of the end of ctx.
func (t *Worktrees) lock(ctx context.Context, folder string) (unlock func(), err error) {
	t.mu.Lock()
	l := t.locks[folder]
	if l == nil {
		l = make(chan struct{}, 1)
		t.locks[folder] = l
	}
	t.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *Worktrees) setUsed(folder string, used bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if used {
		t.used[folder] = true
	} else {
		delete(t.used, folder)
	}
}

func (t *Worktrees) isUsed(folder string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used[folder]
}

// read returns the record of a worktree; nil if there is none.
func (t *Worktrees) read(folder string) (*treeRecord, error) {
	data, err := os.ReadFile(filepath.Join(folder, worktreeFacts))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	r := &treeRecord{}
	return r, json.Unmarshal(data, r)
}

// store stores the record of a worktree in one step.
func (t *Worktrees) store(folder string, r *treeRecord) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return disk.Replace(filepath.Join(folder, worktreeFacts), data)
}

// Objects returns the folders outside of a workspace in which git finds its objects, if the
// workspace is a worktree. Each is a folder, and no link leads to it.
func (t *Worktrees) Objects(dir string) []string {
	folder := t.folderOf(dir)
	if folder == "" {
		return nil
	}
	r, err := t.read(folder)
	if r == nil || err != nil {
		return nil
	}
	var found []string
	for _, path := range r.Objects {
		if resolved, err := filepath.EvalSymlinks(path); err == nil && resolved == path {
			found = append(found, path)
		}
	}
	return found
}
