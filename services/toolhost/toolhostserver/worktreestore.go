package toolhostserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// worktreeLimit bounds the time in which a worktree is made, compared or removed.
	worktreeLimit = 10 * time.Minute
	// Names in the folder of a worktree.
	worktreeFiles = "files" // the workspace of the run
	worktreeBase  = "base"  // what it was made with
	worktreeFacts = "facts" // a worktreeRecord
	worktreeMerge = "merge" // a merge that has begun
	// Prefixes of folders that are not complete, or about to be removed.
	worktreeNew     = "new-"
	worktreeRemoved = "removed-"
)

// worktrees are the worktrees of a host: a folder for each run, which is bound to it by the file facts.
// A worktree exists if its files do, which are put there in one step and last.
type worktrees struct {
	dir string // absolute, without links

	mu    sync.Mutex
	locks map[string]chan struct{}
	// used has the folders whose runs have not ended and whose files exist.
	used map[string]bool
}

// worktreeRecord is what a host knows of a worktree.
type worktreeRecord struct {
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
	Merged map[string]worktreeResult `json:"merged,omitempty"`
	Merge  string                    `json:"merge,omitempty"`
}

// worktreeResult is the result of a merge.
type worktreeResult struct {
	Text    string   `json:"text"`
	Changed []string `json:"changed,omitempty"`
}

// worktreeProblem is why a workspace can have no worktree.
type worktreeProblem string

func (p worktreeProblem) Error() string { return string(p) }

// openWorktrees opens the worktrees of a host.
func openWorktrees(dir string) (*worktrees, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	return &worktrees{dir: filepath.Join(dir, "worktrees"), locks: map[string]chan struct{}{}, used: map[string]bool{}}, err
}

// folder returns the folder of a run's worktree.
func (t *worktrees) folder(namespace, run string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + run))
	return filepath.Join(t.dir, hex.EncodeToString(sum[:8]))
}

// folderOf returns the folder of the worktree that a workspace is; empty if it is none.
func (t *worktrees) folderOf(dir string) string {
	if dir = filepath.Clean(dir); filepath.Base(dir) != worktreeFiles || filepath.Dir(filepath.Dir(dir)) != t.dir {
		return ""
	}
	return filepath.Dir(dir)
}

// lock locks a worktree until unlock is called, or returns the cause of the end of ctx.
func (t *worktrees) lock(ctx context.Context, folder string) (unlock func(), err error) {
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

func (t *worktrees) setUsed(folder string, used bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if used {
		t.used[folder] = true
	} else {
		delete(t.used, folder)
	}
}

func (t *worktrees) isUsed(folder string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used[folder]
}

// read returns the record of a worktree; nil if there is none.
func (t *worktrees) read(folder string) (*worktreeRecord, error) {
	data, err := os.ReadFile(filepath.Join(folder, worktreeFacts))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	r := &worktreeRecord{}
	return r, json.Unmarshal(data, r)
}

// store stores the record of a worktree in one step.
func (t *worktrees) store(folder string, r *worktreeRecord) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(folder, worktreeFacts), data)
}

// writeWhole replaces a file in one step. It is on disk when it returns.
func writeWhole(path string, data []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// objects returns the folders outside of a workspace in which git finds its objects, if the
// workspace is a worktree. Each is a folder, and no link leads to it.
func (t *worktrees) objects(dir string) []string {
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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
