package guard

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

const (
	// maxFolders bounds the folders of a workspace in which repositories are looked for,
	// upper ones first.
	maxFolders = 100_000
	// MaxPlaces bounds the guarded places of a workspace that are found: those by which agents are instructed or set
	// up, and the others.
	MaxPlaces = 5_000
	// maxTrees bounds the workspaces, and other folders, whose folders are remembered.
	maxTrees = 8
	// settled is the age of a folder's last change from which a further change has another
	// time. Some file systems count seconds.
	settled = 2 * time.Second
)

// finder finds the folders that git takes for repositories. It remembers the folders of a
// workspace and reads only those again that have changed since, by the time that the kernel
// sets and that no program can set.
type finder struct {
	limit int // of folders; 0: maxFolders
	mu    sync.Mutex
	trees map[string]*tree
	used  []string // keys of trees, the last one used last
}

// tree is the folders of a workspace.
type tree struct {
	mu    sync.Mutex
	root  *node
	found found
	known bool // found is of an earlier search

	sweepMu sync.Mutex
	swept   map[string]bool // ids of repositories beyond the search; nil before the first sweep
}

// node is a folder.
type node struct {
	name        string
	within      string // the names of the folders above that matter for places
	inode       uint64
	changed     unix.Timespec
	sure        bool // a folder with this time has not changed since it was read
	folders     []*node
	git, isBare bool
	places      []placeName   // the files in it that are guarded places
	guarded     sandbox.Place // what all files in it are
}

// placeName is the name of a file that is a guarded place.
type placeName struct {
	name      string
	instructs bool
}

// Places are the guarded places of a folder that were found.
type Places struct {
	// Names are files, relative to the folder, upper ones first; none of git.
	Names []string
	// Partial reports that there are, or may be, more.
	Partial bool
}

// found are the folders of a workspace that matter.
type found struct {
	// gits are folders with an entry .git, bare those that are bare repositories.
	gits, bare []string
	places     Places
	// rest are folders that are not searched, because there are too many.
	rest []string
	// scarce is why not all folders could be read: there were no descriptors or no memory.
	scarce error
}

// find searches a workspace. With remembered it returns the result of the last search, if
// there was one.
func (f *finder) find(workspace, skip string, remembered bool) found {
	t := f.tree(workspace)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !remembered || !t.known {
		t.found = t.search(workspace, skip, cmp.Or(f.limit, maxFolders))
		t.known = t.found.scarce == nil
	}
	return t.found
}

// tree returns the remembered state of a workspace, a new one the first time.
func (f *finder) tree(workspace string) *tree {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trees == nil {
		f.trees = map[string]*tree{}
	}
	for i, path := range f.used {
		if path == workspace {
			f.used = append(f.used[:i], f.used[i+1:]...)
			break
		}
	}
	f.used = append(f.used, workspace)
	if len(f.used) > maxTrees {
		delete(f.trees, f.used[0])
		f.used = f.used[1:]
	}
	t := f.trees[workspace]
	if t == nil {
		t = &tree{root: &node{}}
		f.trees[workspace] = t
	}
	return t
}

// search visits the folders of a workspace, upper ones first. It follows no links and does
// not look into .git.
func (t *tree) search(workspace, skip string, limit int) found {
	type visit struct {
		path string
		node *node
	}
	var result found
	var root unix.Stat_t
	if unix.Lstat(workspace, &root) != nil {
		return result
	}
	keeps := keepsTimes(workspace)
	var scarce scarcity
	left := map[bool]int{true: MaxPlaces, false: MaxPlaces}
	queue := []visit{{workspace, t.root}}
	for i := 0; i < len(queue); i++ {
		if i == limit {
			for _, v := range queue[i:] {
				result.rest = append(result.rest, v.path)
			}
			break
		}
		v := queue[i]
		queue[i] = visit{}
		if v.path == skip || !v.node.update(v.path, keeps, uint64(root.Dev), &scarce) { //nolint:unconvert // 32 bits on some systems
			continue
		}
		if v.node.git {
			result.gits = append(result.gits, v.path)
		}
		if v.node.isBare {
			result.bare = append(result.bare, v.path)
		}
		for _, p := range v.node.places {
			if left[p.instructs]--; left[p.instructs] < 0 {
				result.places.Partial = true
				continue
			}
			result.places.Names = append(result.places.Names, strings.TrimPrefix(v.path+"/"+p.name, workspace+"/"))
		}
		for _, child := range v.node.folders {
			queue = append(queue, visit{v.path + "/" + child.name, child})
		}
	}
	result.scarce = scarce.err
	result.places.Partial = result.places.Partial || len(result.rest) > 0
	return result
}

// update reads a folder unless it is unchanged. It reports whether the folder can be read.
func (n *node) update(path string, keeps bool, device uint64, scarce *scarcity) bool {
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	if n.sure && stat.Ino == n.inode && stat.Ctim == n.changed && uint64(stat.Dev) == device { //nolint:unconvert // as above
		return true
	}
	n.inode, n.changed = stat.Ino, stat.Ctim
	n.sure = keeps && uint64(stat.Dev) == device && time.Since(time.Unix(stat.Ctim.Unix())) > settled //nolint:unconvert // as above
	return n.read(path, scarce)
}

func (n *node) read(path string, scarce *scarcity) bool {
	entries, err := readFolder(path)
	if scarce.see(err) != nil {
		n.sure = false
		return false
	}
	former := make(map[string]*node, len(n.folders))
	for _, child := range n.folders {
		former[child.name] = child
	}
	n.folders, n.git, n.places = nil, false, nil
	var parts map[string]bool // nil in nearly all folders
	for _, e := range entries {
		name := e.Name()
		switch name {
		case "HEAD", "objects", "refs", "commondir":
			if parts == nil {
				parts = map[string]bool{}
			}
			parts[name] = true
		}
		switch {
		case strings.EqualFold(name, ".git"):
			n.git = true
		case !e.IsDir():
			place := n.guarded
			if place.What == "" {
				place = sandbox.PlaceOf(n.within + n.name + "/" + name)
			}
			if place.What != "" {
				n.places = append(n.places, placeName{name: name, instructs: place.Instructs()})
			}
		case former[name] != nil:
			n.folders = append(n.folders, former[name])
		default:
			within := n.name + "/"
			guarded := n.guarded
			if guarded.What == "" {
				guarded = sandbox.PlaceOf(n.within + within + name + "/x")
			}
			n.folders = append(n.folders, &node{name: name, within: within, guarded: guarded})
		}
	}
	n.isBare = gitguard.IsBare(func(name string) bool { return parts[name] })
	return true
}

// readFolder returns the entries of a folder, which is no link. It reads one that its owner
// may not read, too: git needs no permission to read it.
func readFolder(path string) ([]os.DirEntry, error) {
	const flags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, flags, 0)
	if os.IsPermission(err) {
		root, rootErr := disk.OpenRoot(filepath.Dir(path))
		if rootErr != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		if former, changed := permit(root, filepath.Base(path), 0o500); changed {
			f, err = os.OpenFile(path, flags, 0)
			_ = root.Chmod(filepath.Base(path), former)
		}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.ReadDir(-1)
}

// permit adds permissions of the owner to a file or folder, from which a call may have taken
// them to keep it from being compared. It returns the former ones, and whether they changed.
// It does not follow a link.
func permit(root *os.Root, name string, bits os.FileMode) (former os.FileMode, changed bool) {
	info, err := root.Lstat(name)
	if err != nil || info.Mode()&os.ModeSymlink != 0 || info.Mode().Perm()&bits == bits {
		return 0, false
	}
	return info.Mode().Perm(), root.Chmod(name, info.Mode().Perm()|bits) == nil
}
