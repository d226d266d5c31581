package toolhostserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// trap makes programs run for a user of git.
type trap struct {
	// before is what the user has done, line what the agent does. Both are for a shell in a
	// repository, where ./evil is a program that shows that it ran.
	before, line string
	// user is what the user does later; empty: git status.
	user string
	// names is what the result of the agent's call has to name.
	names string
}

// traps are ways for an agent to have programs run, one for each guard.
var traps = map[string]trap{
	"fsmonitor": {line: "git config core.fsmonitor ./evil", names: "core.fsmonitor in .git/config"},
	"fsmonitor, by hand": {
		line: `{ printf '\357\273\277'; cat .git/config; printf '[CORE]\r\n fsMonitor = "./ev\\\nil"\r\n'; } > c; mv c .git/config`, names: "core.fsmonitor in .git/config",
	},
	"not readable with certainty": {line: `printf '[core]\n\tfsmonitor = ./evil\v\n[alias]\n\tst = !./evil\n' >> .git/config`, user: "git st", names: ".git/config"},
	"alias":                       {line: "git config alias.st '!./evil'", user: "git st", names: "alias.st in .git/config"},
	"pager":                       {line: "git config core.pager ./evil", user: "script -qc 'git log' /dev/null", names: "core.pager in .git/config"},
	"ssh":                         {line: "git config core.sshCommand ./evil; git config remote.o.url ssh://x.invalid/y", user: "git fetch o", names: "core.sshcommand in .git/config"},
	"upload pack":                 {line: "git config remote.o.url /nowhere; git config remote.o.uploadpack ./evil", user: "git fetch o", names: "remote.o.uploadpack in .git/config"},
	"clean filter":                {line: "git config filter.x.clean ./evil; echo '* filter=x' > .gitattributes; touch -d @1 a.txt", names: "filter.x.clean in .git/config"},
	"filter process":              {line: "git config filter.x.process ./evil; echo '* filter=x' > .git/info/attributes; touch -d @1 a.txt", names: "filter.x.process in .git/config"},
	"diff driver":                 {line: "git config diff.external ./evil; echo x >> a.txt", user: "git diff", names: "diff.external in .git/config"},
	"include":                     {line: "echo '[core]fsmonitor = ./evil' > more; git config include.path ../more", names: "include.path in .git/config"},
	"conditional include":         {line: "echo '[core]fsmonitor = ./evil' > more; git config includeIf.gitdir:/.path ../more", names: "includeif.gitdir:/.path in .git/config"},
	"included file":               {before: "echo '[user]name = me' > team; git config include.path ../team", line: "echo '[core]fsmonitor = ./evil' >> team", names: "core.fsmonitor in team"},
	"missing included file":       {before: "git config include.path ../team", line: "echo '[core]fsmonitor = ./evil' >> team", names: "core.fsmonitor in team"},
	"another hooks folder":        {line: "mkdir h; cp evil h/post-index-change; git config core.hooksPath h", user: "touch -d @1 a.txt; git status", names: "core.hookspath in .git/config"},
	"hook":                        {line: "cp evil .git/hooks/pre-commit", user: "git commit --allow-empty -m m", names: "the hook .git/hooks/pre-commit"},
	"changed hook":                {before: "printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", line: "cat evil >> .git/hooks/pre-commit", user: "git commit --allow-empty -m m", names: "the hook .git/hooks/pre-commit"},
	"hook made executable":        {before: "cp evil .git/hooks/pre-commit; chmod -x .git/hooks/pre-commit", line: "chmod +x .git/hooks/pre-commit", user: "git commit --allow-empty -m m", names: "the hook .git/hooks/pre-commit"},
	"sample that is a link":       {line: "ln -sf ../../evil .git/hooks/pre-commit.sample; ln -s pre-commit.sample .git/hooks/pre-commit", user: "git commit --allow-empty -m m", names: "the hook .git/hooks/pre-commit"},
	"hooks that are a link":       {line: "mkdir h; cp evil h/pre-commit; rm -r .git/hooks; ln -s ../h .git/hooks", user: "git commit --allow-empty -m m", names: "the hook .git/hooks"},
	"hook of the project":         {before: "mkdir .githooks; git config core.hooksPath .githooks", line: "cp evil .githooks/pre-commit", user: "git commit --allow-empty -m m", names: "the hook .githooks/pre-commit"},
	"hooks that are not there": {
		before: "git config core.hooksPath team/hooks", line: "mkdir -p team/hooks; cp evil team/hooks/pre-commit", user: "git commit --allow-empty -m m", names: "the hook team/hooks/pre-commit",
	},
	"husky": {
		before: "mkdir -p .husky/_; printf '#!/bin/sh\nsh .husky/pre-commit\n' > .husky/_/pre-commit; chmod +x .husky/_/pre-commit; git config core.hooksPath .husky/_",
		line:   "cp evil .husky/pre-commit", user: "git commit --allow-empty -m m", names: "the hook .husky/pre-commit",
	},
	"configuration of the work tree": {
		before: "git config extensions.worktreeConfig true", line: "git config --worktree core.fsmonitor ./evil", names: "core.fsmonitor in .git/config.worktree",
	},
	"another git folder": {line: "git init -q other; git -C other config core.fsmonitor ./evil; mv .git former; echo 'gitdir: other/.git' > .git", names: "core.fsmonitor in other/.git/config"},
	"git folder of another name": {
		line: "mv .git former; cp -r former x; git config -f x/config core.fsmonitor ./evil; echo 'gitdir: x' > .git", names: "core.fsmonitor in x/config",
	},
	"git folder that is a link": {line: "mv .git x; ln -s x .git; git config core.fsmonitor ./evil", names: "core.fsmonitor in "},
	"moved git folder":          {line: "mv .git x; git config -f x/config core.fsmonitor ./evil; mv x .git", names: "core.fsmonitor in "}, // where it is when it is put back
	"folder with a common one": {
		line: "mkdir -p src/.store/objects src/.store/refs; printf '[core]\\n\\trepositoryformatversion = 1\\n[extensions]\\n\\tworktreeConfig = true\\n' > src/.store/config; " +
			"echo 'ref: refs/heads/master' > src/HEAD; echo .store > src/commondir; printf '[core]\\n\\tworktree = %s\\n\\tbare = false\\n\\tfsmonitor = ./../evil\\n' $PWD/src > src/config.worktree",
		user: "cd src && git status", names: "core.fsmonitor in src/config.worktree",
	},
	"common folder": {line: "cp -r .git x; git config -f x/config core.fsmonitor ./evil; echo ../x > .git/commondir", names: "core.fsmonitor in x/config"},
	"nested repository": {
		line: "git init -q n; git -C n commit -q --allow-empty -m m; git add n; git -C n config core.fsmonitor '../evil'", names: "core.fsmonitor in n/.git/config",
	},
	"nested repository that is hidden": {
		line: "git init -q d/n; git -C d/n commit -q --allow-empty -m m; git add d/n; git -C d/n config core.fsmonitor '../../evil'; chmod 0311 d", names: "core.fsmonitor in d/n/.git/config",
	},
	"hooks of a nested repository": {line: "git init -q n; cp evil n/.git/hooks/pre-commit", user: "git -C n commit --allow-empty -m m", names: "the hook n/.git/hooks/pre-commit"},
	"bare repository":              {line: "git init -q --bare b; git -C b config alias.st '!../evil'", user: "git -C b st", names: "alias.st in b/config"},
	"cloned submodule": {
		before: "git init -q --bare ../o; git push -q ../o HEAD:m; git -c protocol.file.allow=always submodule --quiet add -b m ../o s; git commit -qm s",
		line:   "git -C s config core.fsmonitor ../evil", names: "core.fsmonitor in .git/modules/s/config",
	},
	"hook of a submodule": {
		before: "git init -q --bare ../o; git push -q ../o HEAD:m; git -c protocol.file.allow=always submodule --quiet add -b m ../o s; git commit -qm s",
		line:   "cp evil .git/modules/s/hooks/post-index-change", user: "touch -d @1 s/a.txt; git -C s status", names: "the hook .git/modules/s/hooks/post-index-change",
	},
	"work tree of a repository": {
		line: "git config core.worktree ../..", user: "test \"$(git rev-parse --show-toplevel)\" = \"$PWD\" || ./evil", names: "core.worktree in .git/config",
	},
	"update of a submodule": {
		before: "git init -q --bare ../o; git push -q ../o HEAD:m; git -c protocol.file.allow=always submodule --quiet add -b m ../o s; git commit -qm s",
		line:   "git config submodule.s.update '!./../evil'; git -C s commit -q --allow-empty -m m", user: "git submodule update", names: "submodule.s.update in .git/config",
	},
	"settings in another order": {
		before: "git config core.fsmonitor false; git config --add core.fsmonitor ./evil; git config --add core.fsmonitor false",
		line:   "git config --unset-all core.fsmonitor; git config --add core.fsmonitor false; git config --add core.fsmonitor ./evil", names: "core.fsmonitor in .git/config",
	},
	"unreadable hooks": {line: "cp evil .git/hooks/pre-commit; chmod 0111 .git/hooks", user: "git commit --allow-empty -m m", names: "the hook .git/hooks/pre-commit"},
}

// trapped makes a repository and runs what the user has done before.
func trapped(t *testing.T, dir, before string) {
	t.Helper()
	shell(t, dir, "git init -q && echo a > a.txt && git add . && git commit -qm m")
	if err := os.WriteFile(filepath.Join(dir, "evil"), []byte("#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\" "+dir+"/ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, before)
}

// shell runs a command line as a user does, and returns whether the program ./evil ran.
func shell(t *testing.T, dir, line string) (ran bool) {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("%s: %v: %s", line, err, out)
	}
	_, err := os.Stat(filepath.Join(dir, "ran"))
	return err == nil
}

func gitUser(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = u\n\temail = u@example.com\n[init]\n\tdefaultBranch = m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

// agentsGit gives the git of commands a name for commits.
const agentsGit = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "

// TestTrapsOfAgentsAreTakenAway, each at one level. Each trap works where nothing guards.
func TestTrapsOfAgentsAreTakenAway(t *testing.T) {
	if testing.Short() {
		t.Skip("sets every trap in a repository")
	}
	setTraps(t, false)
}

func TestSystemTrapsOfAgentsAreTakenAwayAtEachLevel(t *testing.T) { setTraps(t, true) }

func setTraps(t *testing.T, everywhere bool) {
	gitUser(t)
	h := newHost(t, Config{})
	all, number := append(h.levels(), sandbox.Off), 0
	for name, trap := range traps {
		levels := all
		if number++; !everywhere {
			levels = all[number%len(all):][:1]
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &host{Server: h.Server, t: t}
			if trap.user == "" {
				trap.user = "git status"
			}
			unguarded := filepath.Join(t.TempDir(), "w")
			h.mkdir(unguarded)
			t.Cleanup(func() { shell(t, unguarded, "chmod -R u+rwX .") })
			trapped(t, unguarded, trap.before)
			shell(t, unguarded, agentsGit+trap.line)
			_ = os.Remove(filepath.Join(unguarded, "ran"))
			if !shell(t, unguarded, trap.user) {
				t.Error("the trap does not work")
			}
			for _, level := range levels {
				h.dir = filepath.Join(t.TempDir(), "w")
				h.mkdir(h.dir)
				dir := h.dir
				t.Cleanup(func() { shell(t, dir, "chmod -R u+rwX .") })
				trapped(t, h.dir, trap.before)
				resp := h.confined(level, nil, agentsGit+trap.line)
				_ = os.Remove(filepath.Join(h.dir, "ran"))
				if shell(t, h.dir, trap.user) {
					t.Errorf("the program ran after the call at %s: %s", sandbox.Name(level), resp.GetResult())
				}
				if !strings.Contains(resp.GetResult(), "[Put back") || !strings.Contains(resp.GetResult(), trap.names) {
					t.Errorf("at %s the result does not name %q: %s", sandbox.Name(level), trap.names, resp.GetResult())
				}
			}
		})
	}
}

func (h *host) mkdir(dir string) {
	h.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
}

// work is what agents do with git. None of it is put back.
var work = []string{
	"echo b > b.txt && git add . && git commit -qm b && git checkout -qb x && git commit -q --allow-empty -m x && git checkout -q - && git merge -q x && git branch -d x",
	"echo c >> a.txt && git stash -q && git stash pop -q && git commit -qam c",
	"git checkout -qb y && git commit -q --allow-empty -m y && git rebase -q HEAD~1 && git tag v && git commit -q --amend --allow-empty -m z",
	`git init -q --bare r && git remote add o "$PWD/r" && git push -qu o HEAD:m && git fetch -q o && git branch -u o/m && git config branch.z.description d`,
	"git config user.name other",
	"git worktree add -q wt && (cd wt && git commit -q --allow-empty -m w) && git worktree remove wt && git worktree add -q wt2 -b wt2",
	`git -c protocol.file.allow=always submodule --quiet add -b m "$PWD/r" s/u && git commit -qm s && git -C s/u commit -q --allow-empty -m in && git submodule status`,
	"git clone -q r c1 && git clone -q --bare r cb.git && git clone -q --mirror r cm.git && git -C c1 commit -q --allow-empty -m c && rm -rf cb.git",
	`git clone -q --sparse --no-tags --depth 1 "file://$PWD/r" c2 && mkdir c2/d && git -C c2 sparse-checkout set d && git -C c2 worktree add -q ../cw`,
	"git push -q o HEAD:s && git -c protocol.file.allow=always clone -q --recurse-submodules -b s r c3 && git -C c3/s/u log -1 && mv c3 c4 && git -C c4 status",
	"git init -q n1 && git init -q --object-format=sha256 n2 && git init -q --separate-git-dir=g n3 && git -C n3 commit -q --allow-empty -m m && git init -q --bare --shared n4",
	"git -C n1 config user.email x@y && mkdir d && mv n1 d && git -C d/n1 status && mv d e && git -C e/n1 commit -q --allow-empty -m m && rm -rf e",
}

// TestGitWorks in a repository, a linked worktree and a submodule, each at one level.
func TestGitWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("runs most commands of git")
	}
	useGit(t, false)
}

func TestSystemGitWorksAtEachLevel(t *testing.T) { useGit(t, true) }

func useGit(t *testing.T, everywhere bool) {
	gitUser(t)
	h := newHost(t, Config{})
	all, number := append(h.levels(), sandbox.Off), 0
	for kind, prepare := range map[string]string{
		"repository":      "git init -q w && git -C w commit -q --allow-empty -m m",
		"linked worktree": "git init -q o && git -C o commit -q --allow-empty -m m && git -C o worktree add -q ../w",
		"submodule": "git init -q o && git -C o commit -q --allow-empty -m m && git init -q super && " +
			"git -C super -c protocol.file.allow=always submodule --quiet add ../o w && git -C super commit -qm m && ln -s super/w w",
	} {
		levels := all
		if number++; !everywhere {
			levels = all[number%len(all):][:1]
		}
		for _, level := range levels {
			t.Run(kind+" at "+sandbox.Name(level), func(t *testing.T) {
				t.Parallel()
				above := t.TempDir()
				shell(t, above, prepare)
				h := &host{Server: h.Server, t: t, dir: filepath.Join(above, "w")}
				h.dir = h.found(h.dir)
				shell(t, h.dir, "echo a > a.txt && git add . && git commit -qm a")
				for _, line := range []string{"set -ex; " + strings.Join(work, "\n"), "set -ex; git -C c1 commit -q --allow-empty -m later; mv n3 n5; git -C n5 status; git -C s/u checkout -qb later"} {
					if resp := h.confined(level, nil, line); resp.GetIsError() || strings.Contains(resp.GetResult(), "Put back") {
						t.Error(resp.GetResult())
					}
				}
				if !strings.Contains(h.confined(level, nil, "git log -2").GetResult(), "other <u@example.com>") {
					t.Error("commits do not have the name of the user")
				}
			})
		}
	}
}

// TestTheNextHostComparesAfterAKilledOne, also with a new ledger.
func TestTheNextHostComparesAfterAKilledOne(t *testing.T) {
	if testing.Short() {
		t.Skip("kills hosts")
	}
	for name, lose := range map[string]bool{"ledger kept": false, "ledger lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
			runGit(t, workspace, "init", "-q")
			config := filepath.Join(workspace, ".git/config")
			before, _ := os.ReadFile(config)
			for _, name := range []string{"go", "done"} {
				if err := syscall.Mkfifo(filepath.Join(workspace, name), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			host, _ := hostDuringCall(t, ledger, workspace, "echo > gate; cat go; git config core.fsmonitor ./evil; cp /bin/true .git/hooks/pre-commit; echo line >> out; echo > done; sleep "+sleep)
			if err := host.process.Process.Signal(syscall.SIGSTOP); err != nil { // so that it does not put back while it lives
				t.Fatal(err)
			}
			// Its other threads run on until one has taken the signal.
			if err := unix.Waitid(unix.P_PID, host.process.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = os.ReadFile(filepath.Join(workspace, "done")) // written when all is planted
			host.kill()
			if lose {
				if err := os.Remove(filepath.Join(ledger, ledgerFile)); err != nil {
					t.Fatal(err)
				}
			}
			if after, _ := os.ReadFile(config); string(after) == string(before) {
				t.Fatal("the command has changed nothing")
			}
			host = serve(t, ledger)
			host.ledgerID(t)
			if after, _ := os.ReadFile(config); string(after) != string(before) {
				t.Errorf("the configuration is %q", after)
			}
			if _, err := os.Lstat(filepath.Join(workspace, ".git/hooks/pre-commit")); err == nil {
				t.Error("the hook is still there")
			}
			// Compared once: what the user changes later stays.
			runGit(t, workspace, "config", "core.pager", "less")
			host.kill()
			serve(t, ledger).ledgerID(t)
			if after, _ := os.ReadFile(config); !strings.Contains(string(after), "less") {
				t.Errorf("the configuration is %q", after)
			}
		})
	}
}

// TestWhatAgentsWriteRunsNowhereOutside: files by which tools run programs, after a contract
// check and at a git status of the user.
func TestWhatAgentsWriteRunsNowhereOutside(t *testing.T) {
	gitUser(t)
	home := os.Getenv("HOME")
	h := newHost(t, Config{})
	for _, level := range h.levels() {
		t.Run(sandbox.Name(level), func(t *testing.T) {
			h := &host{Server: h.Server, t: t, dir: t.TempDir()}
			h.repository()
			evil := "echo ran >> " + home + "/ran; echo ran >> " + home + "/.bashrc"
			for path, content := range map[string]string{
				"Makefile":     "test:\n\t-" + evil + "\n\t-git config core.fsmonitor '" + evil + "'\n\tsh test.sh\n",
				"test.sh":      evil + "\necho well\n",
				"package.json": `{"scripts": {"preinstall": "` + evil + `", "test": "` + evil + `"}}`,
				"conftest.py":  "import os\nos.system('" + evil + "')\n",
			} {
				expect(t, h.call(tools.WriteFile, map[string]any{"path": path, "content": content}), done, false)
			}
			if resp := h.call(tools.WriteFile, map[string]any{"path": ".envrc", "content": evil}); !resp.GetIsError() {
				t.Error("a person was not asked about .envrc")
			}
			resp, err := h.CheckCommand(t.Context(), &harnessv1.CheckCommandRequest{
				Namespace: "n", RunId: "r", Key: sandbox.Name(level), FirstSequence: 7, Workspace: h.dir, Command: "make test",
				Confinement: &harnessv1.Confinement{Level: level},
			})
			if err != nil || resp.GetExitCode() != 0 || !strings.Contains(resp.GetOutput(), "well") || !strings.Contains(resp.GetErrorOutput(), "core.fsmonitor") {
				t.Errorf("got %v, %v", resp, err)
			}
			h.inspect()
			shell(t, h.dir, "git status; git diff; git log")
			for _, name := range []string{"ran", ".bashrc"} {
				if _, err := os.Lstat(filepath.Join(home, name)); err == nil {
					t.Errorf("%s was written into the home of the user", name)
				}
			}
		})
	}
}
