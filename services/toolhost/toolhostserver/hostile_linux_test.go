package toolhostserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The configuration of a repository can make git status run programs. To prove that each
// trap works, the test also runs git as users do.
func TestHostileRepositoryRunsNoProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a repository with every trap")
	}
	t.Parallel()
	for name, setTrap := range map[string]func(t *testing.T, h *host, program string){
		"fsmonitor": func(t *testing.T, h *host, program string) {
			runGit(t, h.dir, "config", "core.fsmonitor", program)
		},
		"clean filter": func(t *testing.T, h *host, program string) {
			h.write(".git/info/attributes", "* filter=evil\n")
			runGit(t, h.dir, "config", "filter.evil.clean", program)
		},
		"filter process": func(t *testing.T, h *host, program string) {
			h.write(".git/info/attributes", "* filter=evil\n")
			runGit(t, h.dir, "config", "filter.evil.process", program)
		},
		"filter of an included file": func(t *testing.T, h *host, program string) {
			h.write("innocent", "[filter \"evil\"]\n\tclean = "+program+"\n")
			h.write(".git/info/attributes", "* filter=evil\n")
			runGit(t, h.dir, "config", "include.path", "../innocent")
		},
		"hook": func(t *testing.T, h *host, program string) {
			hook := filepath.Join(h.dir, ".git/hooks/post-index-change")
			if err := os.Symlink(program, hook); err != nil {
				t.Fatal(err)
			}
		},
		"hooks in another folder": func(t *testing.T, h *host, program string) {
			h.write("hooks/x", "")
			if err := os.Symlink(program, filepath.Join(h.dir, "hooks/post-index-change")); err != nil {
				t.Fatal(err)
			}
			runGit(t, h.dir, "config", "core.hooksPath", "hooks")
		},
		"objects to fetch": func(t *testing.T, h *host, program string) {
			runGit(t, h.dir, "config", "core.repositoryFormatVersion", "1")
			runGit(t, h.dir, "config", "extensions.partialClone", "origin")
			runGit(t, h.dir, "config", "remote.origin.promisor", "true")
			runGit(t, h.dir, "config", "remote.origin.url", "ssh://nowhere.invalid/x")
			runGit(t, h.dir, "config", "core.sshCommand", program)
			loose, _ := filepath.Glob(filepath.Join(h.dir, ".git/objects/[0-9a-f][0-9a-f]"))
			for _, path := range loose {
				kind, _ := exec.Command("sh", "-c", "cd "+h.dir+" && git rev-parse HEAD").Output()
				if !strings.HasPrefix(string(kind), filepath.Base(path)) {
					_ = os.RemoveAll(path)
				}
			}
		},
		"submodule": func(t *testing.T, h *host, program string) {
			other := &host{Server: h.Server, t: t, dir: t.TempDir()}
			other.repository()
			runGit(t, h.dir, "submodule", "--quiet", "add", other.dir, "sub")
			runGit(t, h.dir, "commit", "-q", "-m", "m")
			runGit(t, filepath.Join(h.dir, "sub"), "config", "core.fsmonitor", program)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, Config{})
			h.repository()
			ran := filepath.Join(t.TempDir(), "ran")
			program := filepath.Join(filepath.Dir(ran), "program")
			if err := os.WriteFile(program, []byte("#!/bin/sh\necho x >> "+ran+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			setTrap(t, h, program)
			_ = os.Remove(ran) // setting the trap may run the program
			// The size is the same, so git must compare the content. The other file is
			// unchanged, which git would record in the index.
			h.write("a.txt", "AS COMMITTED\n")
			if err := os.Chtimes(filepath.Join(h.dir, "b.txt"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			h.inspect()
			if _, err := os.Stat(ran); err == nil {
				t.Fatal("the repository's program ran")
			}
			user := exec.Command("git", "status")
			user.Dir = h.dir
			_ = user.Run()
			if _, err := os.Stat(ran); err != nil {
				t.Fatal("the trap does not work")
			}
		})
	}
}

func TestGitInTheRepositoryIsNotRun(t *testing.T) {
	h := newHost(t, Config{})
	h.repository()
	h.write("bin/git", "#!/bin/sh\necho x >> ran\n")
	if err := os.Chmod(filepath.Join(h.dir, "bin/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(h.dir, "bin")+":"+os.Getenv("PATH"))
	h.checkChanges(0) // without a trusted git, bin/git is not counted
	if _, err := os.Stat(filepath.Join(h.dir, "ran")); err == nil {
		t.Fatal("the git in the repository ran")
	}
}
