package guard

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

// write makes files. A path that ends with a slash is a folder, content that begins with ->
// makes a link.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch target, link := strings.CutPrefix(content, "->"); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func newGuard(t testing.TB) *Guard {
	g := New(Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	g.user = func() user { return user{home: "/nowhere"} }
	g.pace = pace{head: time.Hour} // compared at the end only; tests of calls that are alive set another
	t.Cleanup(g.Close)
	return g
}

func start(t testing.TB, g *Guard, dir string) *Watch {
	t.Helper()
	w, err := g.Start(dir, Reach{Everywhere: true})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestInstructionsAboveAWorkspaceArePlaces of a folder in which a call may write, whatever the search finds there.
func TestInstructionsAboveAWorkspaceArePlaces(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/b/work/AGENTS.md": "", "a/AGENTS.md": ""})
	g := New(Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	defer g.Close()
	g.finder.limit = 1
	w, err := g.Start(filepath.Join(dir, "a/b/work"), Reach{Folders: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.End()
	found := w.Others()[0].Places()
	for _, name := range []string{"a/AGENTS.md", "a/b/AGENTS.md", "a/b/CLAUDE.md"} {
		if !slices.Contains(found.Names, name) {
			t.Errorf("%s is not compared: %v", name, found)
		}
	}
	if !found.Partial || slices.Contains(found.Names, "a/b/work/AGENTS.md") {
		t.Errorf("got %v", found)
	}
}

// TestFindSeesWhatHasChanged since the folders were read, and only where git looks.
func TestFindSeesWhatHasChanged(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/b/c/x": "", "repo/.git/": "", "repo/.git/n/.git/": "", "file/.git": "gitdir: x", "link": "->/", "skipped/n/.git/": ""})
	past := time.Now().Add(-time.Hour)
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { return os.Chtimes(path, past, past) })
	<-time.After(settled + 100*time.Millisecond) // so that a change has another time
	f := &finder{}
	find := func(gits, bare []string) {
		t.Helper()
		found := f.find(dir, filepath.Join(dir, "skipped"), false)
		slices.Sort(found.gits)
		for i, list := range [][]string{found.gits, found.bare} {
			for j := range list {
				list[j], _ = filepath.Rel(dir, list[j])
			}
			if want := [][]string{gits, bare}[i]; !slices.Equal(list, want) {
				t.Errorf("got %v, want %v", list, want)
			}
		}
	}
	find([]string{"file", "repo"}, nil)
	if node := f.trees[dir].root; !node.sure || len(node.folders) != 4 {
		t.Errorf("the folder is not remembered: %+v", node)
	}
	// Neither the content nor the times of the folder that programs can set change.
	write(t, dir, map[string]string{"a/b/c/.git/": ""})
	_ = os.Chtimes(filepath.Join(dir, "a/b/c"), past, past)
	find([]string{"a/b/c", "file", "repo"}, nil)
	write(t, dir, map[string]string{"a/HEAD": "", "a/objects/": "", "a/refs": "->/"})
	find([]string{"a/b/c", "file", "repo"}, []string{"a"})
	if err := os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	find([]string{"b/c", "file", "repo"}, []string{"a"})
}

// TestPuttingBackFollowsNoLinks that a call has made, neither of the file nor above it.
func TestPuttingBackFollowsNoLinks(t *testing.T) {
	for name, c := range map[string]struct{ remove, link, to string }{
		"file":        {".git/config", ".git/config", "target"},
		"hooks":       {".git/hooks", ".git/hooks", ""},
		"git folder":  {".git", ".git", ""},
		"above":       {"sub/n", "sub/n", ""},
		"hook folder": {".git/hooks/d", ".git/hooks/d", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			write(t, dir, map[string]string{
				".git/config": "[core]\n\tbare = false\n\teditor = vi\n", ".git/HEAD": "", ".git/hooks/pre-commit": "mine", ".git/hooks/d/x": "mine",
				"sub/n/.git/config": "[core]\n\teditor = vi\n", "sub/n/.git/HEAD": "",
			})
			write(t, outside, map[string]string{"target": "kept", "config": "kept", "hooks/pre-commit": "kept", "x": "kept", "pre-commit": "kept", ".git/config": "kept"})
			g := newGuard(t)
			w := start(t, g, dir)
			if err := os.RemoveAll(filepath.Join(dir, c.remove)); err != nil {
				t.Fatal(err)
			}
			write(t, dir, map[string]string{c.link: "->" + filepath.Join(outside, c.to)})
			text := w.End()
			for _, name := range []string{"target", "config", "hooks/pre-commit", "x", "pre-commit", ".git/config"} {
				if got := read(t, filepath.Join(outside, name)); got != "kept" {
					t.Errorf("%s outside is %q", name, got)
				}
			}
			if entries, _ := os.ReadDir(outside); len(entries) != 6 {
				t.Errorf("outside: %v", entries)
			}
			t.Log(text)
			if info, err := os.Lstat(filepath.Join(dir, c.link)); name != "above" && err == nil && info.Mode()&os.ModeSymlink != 0 {
				t.Errorf("the link is still there: %s", text)
			}
		})
	}
}

// TestLargeHooksAreTakenAway, because they are not kept. The text names them.
func TestLargeHooksAreTakenAway(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/hooks/pre-push": strings.Repeat("x", maxFile+1), ".git/hooks/post-merge": strings.Repeat("x", maxFile+1)})
	g := newGuard(t)
	w := start(t, g, dir)
	hook := filepath.Join(dir, ".git/hooks/pre-push")
	past := time.Now().Add(-time.Hour)
	write(t, dir, map[string]string{".git/hooks/pre-push": strings.Repeat("y", maxFile+1)})
	if err := os.Chtimes(hook, past, past); err != nil {
		t.Fatal(err)
	}
	if text := w.End(); !strings.Contains(text, "Too large to be put back, and removed: the hook .git/hooks/pre-push") {
		t.Errorf("got %q", text)
	}
	if _, err := os.Lstat(hook); err == nil {
		t.Error("the hook is still there")
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git/hooks/post-merge")); err != nil {
		t.Error("the other hook was taken away")
	}
}

// TestKeptIsBounded in number and in bytes; the newest stays.
func TestKeptIsBounded(t *testing.T) {
	g := newGuard(t)
	a, err := newAccess(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	fix := func(size int) []gitguard.Fix {
		return []gitguard.Fix{{Path: "/x", Was: gitguard.Entry{Kind: gitguard.File, Data: make([]byte, size)}}}
	}
	for range maxKept + 3 {
		if _, err := g.keep(a, fix(1)); err != nil {
			t.Fatal(err)
		}
	}
	if places, _ := os.ReadDir(g.kept); len(places) != maxKept {
		t.Errorf("%d places are kept", len(places))
	}
	var last string
	for range 3 {
		if last, err = g.keep(a, fix(maxKeptBytes/2)); err != nil {
			t.Fatal(err)
		}
	}
	if places, _ := os.ReadDir(g.kept); len(places) != 1 || places[0].Name() != filepath.Base(last) {
		t.Errorf("%d places are kept", len(places))
	}
}

func TestASnapshotThatCannotBeStoredStartsNothing(t *testing.T) {
	g := newGuard(t)
	write(t, filepath.Dir(g.calls), map[string]string{"guard": "a file"})
	if _, err := g.Start(t.TempDir(), Reach{}); err == nil {
		t.Error("no error")
	}
	if len(g.open) > 0 {
		t.Error("the call is still guarded")
	}
}

// BenchmarkGuard is one call in a workspace of 100,000 files in 10,500 folders, and in one of
// a few files. Its short form has a tenth of them.
func BenchmarkGuard(b *testing.B) {
	many := 10_000
	if testing.Short() {
		many = 1_000
	}
	for _, folders := range []int{1, many} {
		b.Run(fmt.Sprintf("folders=%d", folders), func(b *testing.B) {
			dir := b.TempDir()
			write(b, dir, map[string]string{".git/config": "[core]\n\tbare = false\n", ".git/HEAD": "", ".git/hooks/pre-commit": "x"})
			for i := range folders {
				at := filepath.Join(dir, fmt.Sprintf("d%d/e%d/f%d", i/500, i/20%25, i%20))
				if err := os.MkdirAll(at, 0o755); err != nil {
					b.Fatal(err)
				}
				for j := range 10 {
					if err := os.WriteFile(filepath.Join(at, fmt.Sprintf("x%d", j)), nil, 0o644); err != nil {
						b.Fatal(err)
					}
				}
			}
			g := newGuard(b)
			<-time.After(settled + 100*time.Millisecond)
			start(b, g, dir).End()
			for b.Loop() {
				start(b, g, dir).End()
			}
		})
	}
}

// TestApprovedChangesStay, also when a call ends that was running during the change.
func TestApprovedChangesStay(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/config": "[core]\n\tbare = false\n", ".git/HEAD": ""})
	g := newGuard(t)
	running := start(t, g, dir)
	approved, err := g.StartWrite(dir)
	if err != nil {
		t.Fatal(err)
	}
	const text = "[core]\n\teditor = vi\n"
	write(t, dir, map[string]string{".git/config": text})
	approved.Accept(filepath.Join(dir, ".git/config"))
	for _, w := range []*Watch{approved, running} {
		if note := w.End(); note != "" || read(t, filepath.Join(dir, ".git/config")) != text {
			t.Errorf("put back: %s", note)
		}
	}
}

// TestAMovedRepositoryIsWhole, also if a link leads to it from its former place.
func TestAMovedRepositoryIsWhole(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/config": "[core]\n\tbare = false\n", ".git/HEAD": "", ".git/hooks/pre-push": "mine"})
	w := start(t, newGuard(t), dir)
	if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{".git": "->x"})
	if note := w.End(); note != "" {
		t.Errorf("put back: %s", note)
	}
	for _, name := range []string{"config", "hooks/pre-push"} {
		read(t, filepath.Join(dir, "x", name))
	}
}
