package toolhostserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// Search leaves out what git leaves out, names it when it finds nothing, and reads it on
// request.
func TestExploringGoesByGitignore(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	runGit(t, h.dir, "init", "-q")
	for name, content := range map[string]string{
		".gitignore": "*.log\nnode_modules/\n/dist/*\n!/dist/keep.js\n", ".git/info/exclude": "/secret.txt\n",
		"src/.gitignore": "!debug.log\n/gen\n", "main.go": "word", "a.log": "word", "src/debug.log": "word", "src/gen/x.go": "word", "gen/x.go": "word",
		"node_modules/p/index.js": "word", "dist/app.js": "word", "dist/keep.js": "word", "secret.txt": "word", "picture.png": "word\x00",
		"inner/.git/HEAD": "ref", "inner/b.log": "word", "inner/.gitignore": "c.txt", "inner/c.txt": "word",
	} {
		h.write(name, content)
	}
	found := func(names ...string) string { return strings.Join(names, "\n") + "\n" }
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{tools.SearchFiles, map[string]any{"pattern": "word"}, found("dist/keep.js:1: word", "gen/x.go:1: word", "inner/b.log:1: word", "main.go:1: word", "src/debug.log:1: word")},
		{tools.SearchFiles, map[string]any{"pattern": "word", "include_ignored": true}, found("a.log:1: word", "dist/app.js:1: word", "dist/keep.js:1: word", "gen/x.go:1: word",
			"inner/b.log:1: word", "inner/c.txt:1: word", "main.go:1: word", "node_modules/p/index.js:1: word", "secret.txt:1: word", "src/debug.log:1: word", "src/gen/x.go:1: word")},
		{tools.SearchFiles, map[string]any{"pattern": "word", "path": "src"}, found("src/debug.log:1: word")},
		{tools.SearchFiles, map[string]any{"pattern": "word", "path": "a.log"}, found("a.log:1: word")},
		{tools.SearchFiles, map[string]any{"pattern": "word", "path": "node_modules"}, found("node_modules/p/index.js:1: word")},
		{tools.SearchFiles, map[string]any{"pattern": "nowhere"}, found("No match. [Left out because of .gitignore: a.log and 5 more; include_ignored: true has them too.]")},
		{tools.SearchFiles, map[string]any{"pattern": "nowhere", "path": "src"}, found("No match. [Left out because of .gitignore: src/gen/; include_ignored: true has it too.]")},
		{tools.SearchFiles, map[string]any{"pattern": "nowhere", "include_ignored": true}, found("No match.")},
		{tools.FindFiles, map[string]any{"pattern": "*.{log,js}"}, found("dist/keep.js", "inner/b.log", "src/debug.log")},
		{tools.FindFiles, map[string]any{"pattern": "*.{log,js}", "include_ignored": true}, found("a.log", "dist/app.js", "dist/keep.js", "inner/b.log", "node_modules/p/index.js", "src/debug.log")},
		{tools.FindFiles, map[string]any{"pattern": "index.js"}, found("No file matches. [Left out because of .gitignore: a.log and 5 more; include_ignored: true has them too.]")},
		{tools.FindFiles, map[string]any{"pattern": "*.png"}, found("picture.png")},
	} {
		if resp := h.call(c.tool, c.arguments); resp.GetResult() != c.want || resp.GetIsError() {
			t.Errorf("%s %v:\ngot  %q\nwant %q", c.tool, c.arguments, resp.GetResult(), c.want)
		}
	}
}

// In a folder of a repository the rules of the folders around it hold too.
func TestExploringGoesByGitignoreOfTheRepositoryAround(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	runGit(t, h.dir, "init", "-q")
	for name, content := range map[string]string{
		".gitignore": "*.log\n/sub/work/made/\n", ".git/info/exclude": "x.txt\n", "sub/.gitignore": "!keep.log\n/work/y.txt\n",
		"sub/work/a.log": "", "sub/work/keep.log": "", "sub/work/made/z.go": "", "sub/work/x.txt": "", "sub/work/y.txt": "", "sub/work/in/y.txt": "",
	} {
		h.write(name, content)
	}
	req := h.request(tools.FindFiles, "", map[string]any{"pattern": "*"})
	req.Workspace = filepath.Join(h.dir, "sub", "work")
	if got := h.execute(req).GetResult(); got != "in/y.txt\nkeep.log\n" {
		t.Errorf("%q", got)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(h.dir, "sub", "other")); err != nil {
		t.Fatal(err)
	}
	// Rules are not read through links out of the repository.
	if err := os.Rename(filepath.Join(h.dir, "sub", "other"), filepath.Join(h.dir, "sub", ".gitignore")); err != nil {
		t.Fatal(err)
	}
	req = h.request(tools.FindFiles, "", map[string]any{"pattern": "*"})
	req.Workspace = filepath.Join(h.dir, "sub", "work")
	if got := h.execute(req).GetResult(); got != "in/y.txt\ny.txt\n" {
		t.Errorf("%q", got)
	}
}

// BenchmarkSearchFiles searches 2,000 files of 4 KB in 100 folders, without rules and with 60.
func BenchmarkSearchFiles(b *testing.B) {
	for name, rules := range map[string]string{"no rules": "", "60 rules": strings.Repeat("*.o\nbuild/\n/dist\n*.py[co]\n__pycache__/\n!keep.me\n", 10)} {
		b.Run(name, func(b *testing.B) {
			h := newHost(b, Config{})
			content := strings.Repeat("a line of a file that says nothing\n", 115)
			for i := range 2000 {
				h.write(fmt.Sprintf("d%d/e%d/f%d.go", i%10, i%100, i), content)
			}
			h.write(".gitignore", rules)
			for b.Loop() {
				h.call(tools.SearchFiles, map[string]any{"pattern": "needle"})
			}
		})
	}
}
