package script_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

const oneTurn = "turns:\n  - {text: Hello.}\n"

// put writes a file and returns its path.
func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesOfAFolder: a script is within the folder also after its links are resolved.
func TestFilesOfAFolder(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "scripts")
	inside := put(t, filepath.Join(dir, "a", "in.yaml"), oneTurn)
	outside := put(t, filepath.Join(base, "out.yaml"), oneTurn)
	named := link(t, dir, filepath.Join(base, "named"))
	const elsewhere, leads, none = "move it there, or change --scripts", "a link leads out of the folder of --scripts", "start `harness serve` with --scripts DIR"
	for name, c := range map[string]struct{ dir, path, problem string }{
		"a file":                  {dir, inside, ""},
		"a relative path":         {dir, "a/in.yaml", ""},
		"a link within":           {dir, link(t, "a/in.yaml", filepath.Join(dir, "within.yaml")), ""},
		"a folder with two names": {named, inside, ""},
		"the other name":          {named, filepath.Join(named, "a", "in.yaml"), ""},
		"another folder":          {dir, outside, elsewhere},
		"the way up":              {dir, dir + "/../out.yaml", elsewhere},
		"a relative way up":       {dir, "../out.yaml", elsewhere},
		"a folder like it":        {dir, put(t, dir+"-2/in.yaml", oneTurn), elsewhere},
		"a link out":              {dir, link(t, outside, filepath.Join(dir, "out.yaml")), leads},
		"a relative link out":     {dir, link(t, "../out.yaml", filepath.Join(dir, "up.yaml")), leads},
		"a linked folder":         {dir, filepath.Join(link(t, base, filepath.Join(dir, "base")), "out.yaml"), leads},
		"no folder":               {"", inside, none},
		"no file":                 {dir, filepath.Join(dir, "none.yaml"), "no such file"},
	} {
		s, err := script.Files{Dir: c.dir, Only: true}.Load(c.path)
		if c.problem == "" {
			if err != nil || s.Len() != 1 {
				t.Errorf("%s: %v", name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), c.path+": ") {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
	}
	// Without Only, other files are read too, but a link does not lead out of the folder.
	every := script.Files{Dir: dir}
	if _, err := every.Load(outside); err != nil {
		t.Error(err)
	}
	if _, err := every.Load(filepath.Join(dir, "out.yaml")); err == nil || !strings.Contains(err.Error(), leads) {
		t.Errorf("a link out: %v", err)
	}
}

// TestAliasesAreBounded: a small file does not expand to a huge script.
func TestAliasesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads large files")
	}
	turns := "turns:\n  - &t {calls: [&c {name: a}" + strings.Repeat(", *c", 999) + "]}\n" + strings.Repeat("  - *t\n", 600)
	large := "turns:\n  - calls:\n    - &c {name: a, arguments: {b: " + strings.Repeat("x", 1<<20) + "}}\n" + strings.Repeat("    - *c\n", 70)
	answers := "jobs:\n  plan:\n    - &a {answer: {b: " + strings.Repeat("x", 1<<20) + "}}\n" + strings.Repeat("    - *a\n", 70)
	for text, problem := range map[string]string{turns: "500000 mappings", large: "together exceed 67108864 bytes", answers: "together exceed 67108864 bytes"} {
		if _, err := script.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%.60s: %v, want %q", text, err, problem)
		}
	}
}

// TestOnlyRegularFilesOfBoundedSize: no other file is read, and none is waited for.
func TestOnlyRegularFilesOfBoundedSize(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a file of the largest size")
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	fits := put(t, filepath.Join(dir, "fits.yaml"), oneTurn+strings.Repeat("#", script.MaxFile-len(oneTurn)))
	large := put(t, filepath.Join(dir, "large.yaml"), oneTurn+strings.Repeat("#", script.MaxFile-len(oneTurn)+1))
	for path, problem := range map[string]string{
		"/dev/zero": "it is a device: expected a regular file", pipe: "it is a pipe", dir: "it is a folder", large: "it exceeds 16777216 bytes", fits: "",
	} {
		for _, files := range []script.Files{{}, {Dir: dir}} {
			_, err := files.Load(path)
			if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
				t.Errorf("%s with %+v: %v, want %q", path, files, err, problem)
			}
		}
	}
}
