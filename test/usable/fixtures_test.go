//go:build linux

package usable

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds a command of a fixture.
const patience = 5 * time.Minute

// fixture is a small project with commands that its developer would run.
type fixture struct {
	// needs are the programs that it needs.
	needs string
	files map[string]string
	// prepare runs outside before. In the sandbox come commands, in folder below the project.
	prepare  []string
	folder   string
	commands []string
	// want is part of the output of the last one.
	want string
}

const goTest = "package m\n\nimport (\n\t\"testing\"\n\n\t\"example.org/dep\"\n)\n\nfunc TestDep(t *testing.T) {\n\tif dep.Answer() != 42 {\n\t\tt.Fail()\n\t}\n}\n"

// fixtures need no network and no package of others.
var fixtures = map[string]fixture{
	"go": {
		needs: "go",
		files: map[string]string{
			"go.mod": "module example.org/m\n\ngo 1.21\n\nrequire example.org/dep v1.0.0\n\nreplace example.org/dep => ./dep\n", "m_test.go": goTest,
			"dep/go.mod": "module example.org/dep\n\ngo 1.21\n", "dep/dep.go": "package dep\n\nfunc Answer() int { return 42 }\n",
		},
		commands: []string{"go vet ./...", "go build ./...", "go test ./..."}, want: "ok  \texample.org/m",
	},
	"npm": {
		needs: "npm node",
		files: map[string]string{
			"package.json":     `{"name": "m", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"dep": "file:dep"}}`,
			"dep/package.json": `{"name": "dep", "version": "1.0.0", "main": "dep.js"}`, "dep/dep.js": "module.exports = 42\n",
			"m.test.js": "const test = require('node:test')\nconst assert = require('node:assert')\ntest('dep', () => assert.equal(require('dep'), 42))\n",
		},
		prepare: []string{"npm install --package-lock-only --offline --no-audit --no-fund"}, commands: []string{"npm ci --offline --no-audit --no-fund", "npm test"}, want: "pass 1",
	},
	"python": {
		needs: "python3",
		files: map[string]string{
			"m.py": "ANSWER = 42\n", "test_m.py": "import unittest\nimport m\n\nclass Test(unittest.TestCase):\n    def test_m(self):\n        self.assertEqual(m.ANSWER, 42)\n",
		},
		commands: []string{"python3 -m venv .venv", ".venv/bin/python -m pip --version", ".venv/bin/python -m unittest -v"}, want: "OK",
	},
	"cargo": {
		needs: "cargo cc",
		files: map[string]string{
			"Cargo.toml":     "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ndep = { path = \"dep\" }\n",
			"src/lib.rs":     "#[test]\nfn answers() {\n    assert_eq!(dep::answer(), 42);\n}\n",
			"dep/Cargo.toml": "[package]\nname = \"dep\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "dep/src/lib.rs": "pub fn answer() -> u32 {\n    42\n}\n",
		},
		commands: []string{"cargo build", "cargo test"}, want: "test answers ... ok",
	},
	"make": {
		needs: "make cc",
		files: map[string]string{
			"Makefile": "CFLAGS += -Wall\n\ncheck: m\n\t./m | grep '^42$$'\n\nm: m.o\n\t$(CC) -o $@ $<\n\nclean:\n\trm -f m m.o\n", "m.c": "#include <stdio.h>\nint main(void) { return printf(\"42\\n\") < 0; }\n",
		},
		commands: []string{"make", "make -j2 check", "make clean", "make check"}, want: "42",
	},
	"git": {
		needs: "git", files: map[string]string{"a.txt": "1\n"}, prepare: []string{"git init -q && git add -A && git commit -qm first"},
		commands: []string{
			"git switch -qc topic && echo 2 > a.txt && git commit -qam second", "echo 3 > a.txt && git stash -q && git stash pop -q && git commit -qam third",
			"git switch -q main && git merge -q topic && git rebase -q topic && git gc -q && git fsck && git status --porcelain && git log --oneline | wc -l",
		},
		want: "3\n",
	},
	"git in a worktree": {
		needs: "git", files: map[string]string{"main/a.txt": "1\n"}, folder: "linked",
		prepare:  []string{"git -C main init -q && git -C main add -A && git -C main commit -qm first && git -C main worktree add -q ../linked -b topic"},
		commands: []string{"echo 2 > a.txt && git commit -qam second", "git stash list && git tag t && git log --oneline topic | wc -l"}, want: "2\n",
	},
	"git in a submodule": {
		needs: "git", files: map[string]string{"other/a.txt": "1\n", "main/b.txt": "1\n"}, folder: "main/sub",
		prepare: []string{
			"git -C other init -q && git -C other add -A && git -C other commit -qm first",
			"cd main && git init -q && git add -A && git commit -qm first && git -c protocol.file.allow=always submodule add -q ../other sub && git commit -qm sub",
		},
		commands: []string{"echo 2 > a.txt && git commit -qam second", "git log --oneline | wc -l"}, want: "2\n",
	},
	"git above a submodule": {
		needs: "git", files: map[string]string{"other/a.txt": "1\n", "main/b.txt": "1\n"}, folder: "main",
		prepare: []string{
			"git -C other init -q && git -C other add -A && git -C other commit -qm first",
			"cd main && git init -q && git add -A && git commit -qm first && git -c protocol.file.allow=always submodule add -q ../other sub && git commit -qm sub",
		},
		commands: []string{"cd sub && echo 2 > a.txt && git commit -qam second && cd .. && git commit -qam 'move sub' && git submodule update --init && git submodule status | grep -c '^ '"}, want: "1\n",
	},
}

// TestFixtures runs each fixture in the sandbox, without network.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("builds projects")
	}
	for name, f := range fixtures {
		t.Run(name, func(t *testing.T) {
			if none := missing(f.needs); len(none) > 0 {
				t.Logf("not tried: %s is not installed", strings.Join(none, ", "))
				return
			}
			dir := t.TempDir()
			built := outside(t, dir, "go env GOCACHE", patience)
			enterHome(t, filepath.Join(dir, "home"))
			t.Setenv("GOCACHE", strings.TrimSpace(built.output)) // the standard library need not be built again
			f.run(t, dir, nil, nil)
		})
	}
}

// run prepares a fixture, and runs its commands with hosts.
func (f fixture) run(t *testing.T, dir string, hosts, private []string) {
	t.Helper()
	project := filepath.Join(dir, "project")
	write(t, project, f.files)
	for _, line := range f.prepare {
		if o := outside(t, project, line, patience); o.code != 0 {
			t.Fatalf("outside: %s: exit code %d\n%s", line, o.code, o.output)
		}
	}
	data := filepath.Join(dir, "data")
	host := newToolHost(t, data, private)
	defer host.close(t, data)
	var last outcome
	for _, line := range f.commands {
		if last = host.run(t, filepath.Join(project, f.folder), line, hosts, patience); last.code != 0 {
			t.Fatalf("in the sandbox: %s: exit code %d\n%s", line, last.code, last.output)
		}
	}
	if !strings.Contains(last.output, f.want) {
		t.Errorf("got %s, want %q", last.output, f.want)
	}
}
