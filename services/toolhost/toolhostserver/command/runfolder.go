package command

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// pruneEvery is the interval at which a host looks for folders to remove.
const pruneEvery = time.Hour

// keepRunFolder is how long the folder of a run is kept after its last command: its home, its
// temporary files and its changes of caches.
const keepRunFolder = 3 * 24 * time.Hour

// runFolders are the folders that the commands of runs have for themselves.
type runFolders struct {
	dir string

	mu   sync.Mutex
	used map[string][]bool // which overlays of a folder a command uses
}

// runFolder is what one command has of the folder of its run.
type runFolder struct {
	root    string
	overlay int
}

func (f runFolder) home() string      { return filepath.Join(f.root, "home") }
func (f runFolder) temporary() string { return filepath.Join(f.root, "tmp") }

// overlays is the folder with changes of caches. Two mounts must not share one.
func (f runFolder) overlays() string {
	return filepath.Join(f.root, "caches", strconv.Itoa(f.overlay))
}

// take returns the folder of a run, by its key in the ledger, for one command. release ends
// its use.
func (r *runFolders) take(run string) (f runFolder, release func()) {
	sum := sha256.Sum256([]byte(run))
	f.root = filepath.Join(r.dir, hex.EncodeToString(sum[:8]))
	r.mu.Lock()
	defer r.mu.Unlock()
	used := r.used[f.root]
	for f.overlay < len(used) && used[f.overlay] {
		f.overlay++
	}
	if f.overlay == len(used) {
		used = append(used, false)
	}
	used[f.overlay] = true
	if r.used == nil {
		r.used = map[string][]bool{}
	}
	r.used[f.root] = used
	return f, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		used[f.overlay] = false
		for _, busy := range r.used[f.root] {
			if busy {
				return
			}
		}
		delete(r.used, f.root)
		now := time.Now()
		_ = os.Chtimes(f.root, now, now) // for prune
	}
}

// tidy removes folders that are not used any more, until done is closed.
func (r *runFolders) tidy(done <-chan struct{}) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		r.prune(time.Now().Add(-keepRunFolder))
		select {
		case <-tick.C:
		case <-done:
			return
		}
	}
}

// prune removes the folders of runs that have had no command since a time.
func (r *runFolders) prune(since time.Time) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return // no command has run here
	}
	for _, entry := range entries {
		root := filepath.Join(r.dir, entry.Name())
		r.mu.Lock()
		info, err := entry.Info()
		if err == nil && r.used[root] == nil && info.ModTime().Before(since) {
			// Aside, so that a command that begins now gets a new one.
			if aside := root + ".removed"; os.Rename(root, aside) == nil {
				defer disk.RemoveAll(aside)
			}
		}
		r.mu.Unlock()
	}
}
