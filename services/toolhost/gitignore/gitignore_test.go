package gitignore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// TestMain keeps the repositories in memory: the property makes a few hundred.
func TestMain(m *testing.M) {
	storetest.InMemory()
	os.Exit(m.Run())
}

// repository is a real repository with files, and this package's view of it.
type repository struct {
	dir string
	// files are the .gitignore files, by folder; exclude is .git/info/exclude.
	files   map[string]*File
	exclude *File
}

func newRepository(t interface {
	Fatal(...any)
}, dir string, ignores map[string]string, exclude string, paths []string) *repository {
	write := func(path, content string) {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range paths {
		write(path, "")
	}
	r := &repository{dir: dir, files: map[string]*File{}, exclude: Parse(exclude)}
	for folder, content := range ignores {
		write(filepath.Join(folder, ".gitignore"), content)
		r.files[folder] = Parse(content)
	}
	init := exec.Command("git", "init", "-q", dir)
	init.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	write(".git/info/exclude", exclude)
	return r
}

// ignored reports what this package says about a file: its folders from the root on, then
// itself.
func (r *repository) ignored(path string) bool {
	parts := strings.Split(path, "/")
	for n := range parts {
		if r.leftOut(strings.Join(parts[:n+1], "/"), n+1 < len(parts)) {
			return true
		}
	}
	return false
}

func (r *repository) leftOut(path string, folder bool) bool {
	for at := path; at != "."; {
		at = filepath.Dir(at)
		below := path
		if at != "." {
			below = path[len(at)+1:]
		}
		if out, decided := r.files[at].Match(below, folder); decided {
			return out
		}
	}
	out, _ := r.exclude.Match(path, folder)
	return out
}

// git returns those of the paths that git ignores.
func (r *repository) git(t interface{ Fatal(...any) }, paths []string) map[string]bool {
	cmd := exec.Command("git", "-C", r.dir, "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: none is
		t.Fatal(err, errs.String())
	}
	ignored := map[string]bool{}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		ignored[path] = true
	}
	return ignored
}

func (r *repository) compare(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, paths []string, rules any) {
	want := r.git(t, paths)
	for _, path := range paths {
		if got := r.ignored(path); got != want[path] {
			t.Errorf("%s: left out %v, git says %v; %q", path, got, want[path], rules)
		}
	}
}

var realPaths = []string{
	"main.go", "main.log", "debug.log.txt", "build/out.o", "src/build/out.o", "src/a/b/c.go", "src/a/keep.log", "doc/frotz/a", "a/doc/frotz/a",
	"node_modules/x/index.js", "web/node_modules/x/index.js", "foo/bar", "foo/a/bar", "foo/a/b/bar", "a/foo/bar", "x1", "x2", "xa", "x", "x-y", "x]",
	"#note", "!bang", "trailing ", "back\\slash", "ä", "temp/keep/me", "temp/other", ".env", ".env.sample", "src/.env", "web/dist/app.js", "web/dist/keep.js",
	"abc/def/ghi", "abc/x/y/ghi", "[a]", "star*", "A.TXT", "a.txt", "cr.txt",
}

func TestRulesAreThoseOfGit(t *testing.T) {
	for name, c := range map[string]struct {
		root, exclude string
		nested        map[string]string
	}{
		"names":            {root: "*.log\nbuild\n.env\n"},
		"folders":          {root: "build/\nnode_modules/\nmain.go/\n"},
		"anchored":         {root: "/build\ndoc/frotz\n/x?\n"},
		"any folders":      {root: "**/frotz\nfoo/**/bar\nsrc/**\nabc/**/ghi\n"},
		"only **":          {root: "**\n!*/\n!*.go\n"},
		"a folder's rest":  {root: "foo/*\n!foo/a\n"},
		"negation":         {root: "*.log\n!keep.log\n.env*\n!.env.sample\n"},
		"negation too far": {root: "temp/\n!temp/keep/me\n"},
		"negated folder":   {root: "temp/*\n!temp/keep/\n"},
		"brackets":         {root: "x[0-9]\n[[:upper:]].TXT\nx[!1a]\n[]a-b]\\]\n\\[a\\]\nx[]]\n[[:nope:]]x\n[a\n"},
		"escapes":          {root: "\\#note\n\\!bang\ntrailing\\ \nback\\\\slash\nstar\\*\nmain.go\\\n"},
		"spaces and ends":  {root: "# comment\n\n   \nx1   \r\ncr.txt\r\n/\n//\n!\n\t\n"},
		"a mark":           {root: "\ufeffmain.go\nx1\n"},
		"bytes":            {root: "??\n"},
		"stars":            {root: "*a**.*t\n***.go\nfoo/**bar\n**/**\n!**/*.js\n"},
		"double slashes":   {root: "src//a\nfoo/ba*/\nweb/dist/**\n!web/dist/keep.js\n"},
		"nested": {root: "*.js\n", nested: map[string]string{
			"web": "!*.js\n/dist\nnode_modules\n", "src": "/a/*\n!/a/b\n", "temp/keep": "*\n",
		}},
		"exclude is the weakest": {root: "!main.log\n", exclude: "*.log\n/x1\n", nested: map[string]string{"src": "!.env\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			ignores := map[string]string{".": c.root}
			for folder, content := range c.nested {
				ignores[folder] = content
			}
			newRepository(t, t.TempDir(), ignores, c.exclude, realPaths).compare(t, realPaths, c)
		})
	}
}

// Random rules in random folders are those of git.
func TestRandomRulesAreThoseOfGit(t *testing.T) {
	top := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "a?", `\a`, "*a*", "[a-c]b", "[[:alpha:]]"})
		line := rapid.Custom(func(t *rapid.T) string {
			text := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "/")
			return rapid.SampledFrom([]string{"", "", "", "!"}).Draw(t, "negate") + rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "anchor") + text +
				rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "folder")
		})
		file := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(line, 0, 5).Draw(t, "lines"), "\n") + "\n" })
		var paths []string
		for _, x := range []string{"a", "b", "ab", "c"} {
			paths = append(paths, x+"/a/b/ab", x+"/b/a", x+"/ab/c/a", x+"/c", x+"0")
		}
		ignores := map[string]string{".": file.Draw(t, "root"), "a": file.Draw(t, "a"), "a/b": file.Draw(t, "a/b")}
		exclude := file.Draw(t, "exclude")
		n++
		dir := filepath.Join(top, string(rune('a'+n%26)))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		newRepository(t, dir, ignores, exclude, paths).compare(t, paths, []any{ignores, exclude})
	})
}

// No pattern takes long, whatever it is.
func TestPatternsAreQuick(t *testing.T) {
	begin := time.Now()
	for _, pattern := range []string{strings.Repeat("*a", 500) + "b", strings.Repeat("**/a/", 500) + "b", strings.Repeat("[a-z]*", 300) + "!"} {
		Parse(pattern).Match(strings.Repeat("a/", 1000)+strings.Repeat("a", 1000), false)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("%v", took)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("*.log\n!keep.log\n[a-\n[[:x:]]\n\\", "a/b.log")
	f.Fuzz(func(_ *testing.T, content, path string) {
		Parse(content).Match(path, len(path)%2 == 0)
	})
}
