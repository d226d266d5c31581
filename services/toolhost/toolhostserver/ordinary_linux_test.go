package toolhostserver

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// ordinary are kinds of repositories, and the commands that are particular to each. All files by which
// programs run or agents are instructed differ in the branches main and other, apart from hooks that
// git runs: those are put back.
var ordinary = map[string]struct{ prepare, both, other string }{
	"husky": {
		prepare: "mkdir -p .husky/_; printf '#!/bin/sh\\nsh .husky/pre-commit\\n' > .husky/_/pre-commit; chmod +x .husky/_/pre-commit; echo 'echo checked' > .husky/pre-commit; " +
			"mkdir .githooks; echo 'echo main' > .githooks/pre-push; echo '_' > .husky/.gitignore; echo '{\"scripts\":{\"prepare\":\"husky\"}}' > package.json; echo a=b > .npmrc; echo x > .pnpmfile.cjs; git config core.hooksPath .husky/_",
		both:  "sh .husky/pre-commit; cat .npmrc; ls .husky; git config core.hooksPath; echo c=d >> .npmrc; git diff --stat; git checkout -q .npmrc; git commit -q --allow-empty -m hooked; git log -1 --format=%s",
		other: "echo 'echo other' > .githooks/pre-push; echo c=d > .npmrc; echo y > .pnpmfile.cjs",
	},
	"direnv": {
		prepare: "echo 'export A=1' > .envrc; echo 'A=1' > .env; mkdir sub; echo 'export B=1' > sub/.envrc; printf '[tools]\\n' > .mise.toml",
		both:    ". ./.envrc && echo $A; cat .env sub/.envrc; set -a; . ./.env; sed -i s/1/2/ .env; git diff --stat; git checkout -q .env; cp .env .env.local; rm .env.local; grep -r export . --include=.envrc | sort; mv sub sub2; mv sub2 sub; git status --short",
		other:   "echo 'export A=2' > .envrc; echo 'A=2' > .env; echo 'export B=2' > sub/.envrc; printf '[tools]\\nnode = \"22\"\\n' > .mise.toml",
	},
	"devcontainer": {
		prepare: "mkdir -p .devcontainer .vscode .github/workflows .idea; echo '{\"image\":\"a\"}' > .devcontainer/devcontainer.json; echo '{}' > .vscode/settings.json; echo '{}' > .vscode/extensions.json; echo 'on: push' > .github/workflows/ci.yml; echo '<a/>' > .idea/a.xml; echo 'repos: []' > .pre-commit-config.yaml",
		both:    "cat .devcontainer/devcontainer.json .vscode/*.json; find .vscode -type f | sort; cp -a .devcontainer copy; diff -r .devcontainer copy; rm -r copy; git ls-files | sort; tar cf x.tar .vscode; rm -r .vscode; tar xf x.tar; rm x.tar; git status --short; cat .github/workflows/*.yml",
		other:   "echo '{\"image\":\"b\"}' > .devcontainer/devcontainer.json; echo '{\"a\":1}' > .vscode/settings.json; rm .vscode/extensions.json; echo 'on: pull_request' > .github/workflows/ci.yml; echo '<b/>' > .idea/b.xml",
	},
	"submodules": {
		prepare: "git init -q ../lib; echo lib > ../lib/AGENTS.md; git -C ../lib add .; git -C ../lib commit -qm lib; git -c protocol.file.allow=always submodule --quiet add ../lib lib; echo '{}' > .mcp.json; echo 'name: a' > agent.yaml",
		both:    "git submodule status | cut -c43-; cat lib/AGENTS.md; git -C lib log --format=%s; echo x > lib/x; git -C lib add x; git -C lib commit -qm x; git status --short; git add lib; git commit -qm bump; git -c protocol.file.allow=always submodule update --init; git submodule foreach --quiet 'git status --short'; git diff --submodule=log --stat HEAD~1; git reset -q --hard HEAD~1; git -c protocol.file.allow=always submodule --quiet update; git submodule status | cut -c43-",
		other:   "echo '{\"mcpServers\":{}}' > .mcp.json; echo 'name: b' > agent.yaml",
	},
}

// common are the commands of every kind, one at a time.
const common = `git status --short; git branch -a; git log --oneline --format=%s; git checkout -q other; cat AGENTS.md CLAUDE.md; ls -A; git status --short; git checkout -q main; cat AGENTS.md
git switch -q other; git switch -q -; sed -i 1s/main/more/ AGENTS.md; git stash -q; cat AGENTS.md; git checkout -q other; git checkout -q main; git stash pop -q; git diff --stat; git commit -qam 'more instructions'
git checkout -q -b topic other; echo t > t.txt; git add .; git commit -qm topic; git rebase -q main; git log --format=%s; cat AGENTS.md; git checkout -q main; git merge -q --no-edit topic; git log --format=%s -3
git push -q origin main; git checkout -q -b behind origin/main~1; git pull -q --no-rebase origin main; git log --format=%s -1; git checkout -q main; git branch -D behind; git fetch -q; git reset -q --hard origin/other; cat CLAUDE.md; git reset -q --hard origin/main
git stash list; rm AGENTS.md; git status --short; git restore AGENTS.md; git mv AGENTS.md A.md; git commit -qm moved; git revert --no-edit HEAD; cat AGENTS.md; git cherry-pick --allow-empty HEAD~1; git reset -q --hard HEAD~2; git clean -fdq
git worktree add -q ../wt other; cat ../wt/AGENTS.md; git worktree remove ../wt; git format-patch -q -1 -o p; git apply --check -R p/*.patch; rm -r p; git tag v; git checkout -q v; git checkout -q main; git rm -q CLAUDE.md; git commit -qm gone; git revert --no-edit HEAD; git bisect start; git bisect bad; git bisect good origin/other~1; git bisect reset; git gc -q; git fsck`

// commitName is the name of a commit.
var commitName = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)

// TestSystemOrdinaryWorkIsAsWithoutTheGuards: each command prints, returns and leaves at each level what it does
// in a shell that nothing guards, and a checkout of the other branch is named.
func TestSystemOrdinaryWorkIsAsWithoutTheGuards(t *testing.T) {
	gitUser(t)
	h := newHost(t, Config{})
	count := 0
	for _, level := range h.levels() {
		for kind, repository := range ordinary {
			lines := strings.Split(strings.ReplaceAll(common, "\n", "; ")+"; "+repository.both, "; ")
			if kind == "husky" { // a linked worktree gets the hooks of the repository, which are put back
				lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "../wt") })
			}
			count += len(lines)
			t.Run(kind+" at "+sandbox.Name(level), func(t *testing.T) {
				t.Parallel()
				plain, guarded := filepath.Join(t.TempDir(), "w"), filepath.Join(t.TempDir(), "w")
				for _, at := range []string{plain, guarded} {
					prepareOrdinary(t, at, repository.prepare, repository.other)
				}
				h := &host{Server: h.Server, t: t, dir: guarded}
				named := 0
				for _, line := range lines {
					line = "cd work; " + line
					cmd := exec.Command("sh", "-c", "exec 2>&1; "+line)
					cmd.Dir = plain
					out, err := cmd.CombinedOutput()
					if err != nil && cmd.ProcessState == nil {
						t.Fatal(err)
					}
					resp := h.confined(level, nil, "exec 2>&1; "+line)
					if resp.GetGuarded() != "" {
						named++
					}
					if strings.Contains(resp.GetResult(), "Put back") || int(resp.GetExitCode()) != cmd.ProcessState.ExitCode() || !sameOutput(string(out), plain, resp.GetResult(), guarded) {
						t.Errorf("%s: without guards: %d, %s\nwith them: %s", line, cmd.ProcessState.ExitCode(), out, resp.GetResult())
					}
				}
				if one, two := state(t, plain), state(t, guarded); one != two {
					t.Errorf("it leaves\n%s\nand without guards\n%s", two, one)
				}
				if named < 10 {
					t.Errorf("%d results name changed places, want one for each change of a branch", named)
				}
			})
		}
	}
	if count < 400 {
		t.Errorf("%d commands, want 200 for each level", count)
	}
}

// prepareOrdinary makes a repository with two branches and a remote.
func prepareOrdinary(t *testing.T, at, prepare, other string) {
	t.Helper()
	(&host{t: t}).mkdir(filepath.Join(at, "work"))
	line := fmt.Sprintf("set -e; git init -q -b main; seq 9 | sed s,^,main, > AGENTS.md; ln -s AGENTS.md CLAUDE.md; echo a > a.txt; mkdir -p .claude/skills/s; echo s > .claude/skills/s/SKILL.md; "+
		"%s; git add -A; git commit -qm main; git checkout -q -b other; sed -i 9s/main/other/ AGENTS.md; rm CLAUDE.md; echo claude > CLAUDE.md; echo o > .claude/skills/s/SKILL.md; echo r > .cursorrules; "+
		"%s; git add -A; git commit -qm other; git checkout -q main; git init -q --bare ../origin.git; git remote add origin ../origin.git; git push -q origin main other; git fetch -q; git branch -q -u origin/main", prepare, other)
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = filepath.Join(at, "work")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// sameOutput reports whether a command has printed the same, apart from the paths of the workspace, names of
// commits, and the lines that the tool host adds.
func sameOutput(plain, dir, result, guarded string) bool {
	clean := func(text, dir string) string {
		text = commitName.ReplaceAllString(strings.ReplaceAll(text, dir, "W"), "C")
		var lines []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[exit code") && !strings.HasPrefix(line, "[Changed, and kept") && !strings.HasPrefix(line, "Date:") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	}
	return clean(plain, dir) == clean(result, guarded)
}

// state returns what a workspace has: its files, and its branches without the names of commits.
func state(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", "cd work; find . -path ./.git -prune -o \\( -type f -o -type l \\) -print | sort | while read f; do echo $f; cat $f; done; git branch -a; git log --all --format=%s | sort; git config --local -l | sort; git status --short")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.ReplaceAll(string(out), dir, "W")
}
