package toolhostserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A hostile repository has its programs run by whoever asks for its status. Each
// trap is sprung once by git as users run it, so that a trap that does not work
// is no proof.
func TestAHostileRepositoryRunsNothing(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, h *host, program string){
		"fsmonitor": func(t *testing.T, h *host, program string) {
			git(t, h.dir, "config", "core.fsmonitor", program)
		},
		"a clean filter": func(t *testing.T, h *host, program string) {
			h.write(".git/info/attributes", "* filter=evil\n")
			git(t, h.dir, "config", "filter.evil.clean", program)
		},
		"a filter process": func(t *testing.T, h *host, program string) {
			h.write(".git/info/attributes", "* filter=evil\n")
			git(t, h.dir, "config", "filter.evil.process", program)
		},
		"a filter of an included file": func(t *testing.T, h *host, program string) {
			h.write("innocent", "[filter \"evil\"]\n\tclean = "+program+"\n")
			h.write(".git/info/attributes", "* filter=evil\n")
			git(t, h.dir, "config", "include.path", "../innocent")
		},
		"a hook": func(t *testing.T, h *host, program string) {
			hook := filepath.Join(h.dir, ".git/hooks/post-index-change")
			if err := os.Symlink(program, hook); err != nil {
				t.Fatal(err)
			}
		},
		"hooks elsewhere": func(t *testing.T, h *host, program string) {
			h.write("hooks/x", "")
			if err := os.Symlink(program, filepath.Join(h.dir, "hooks/post-index-change")); err != nil {
				t.Fatal(err)
			}
			git(t, h.dir, "config", "core.hooksPath", "hooks")
		},
		"objects that have to be fetched": func(t *testing.T, h *host, program string) {
			git(t, h.dir, "config", "core.repositoryFormatVersion", "1")
			git(t, h.dir, "config", "extensions.partialClone", "origin")
			git(t, h.dir, "config", "remote.origin.promisor", "true")
			git(t, h.dir, "config", "remote.origin.url", "ssh://nowhere.invalid/x")
			git(t, h.dir, "config", "core.sshCommand", program)
			loose, _ := filepath.Glob(filepath.Join(h.dir, ".git/objects/[0-9a-f][0-9a-f]"))
			for _, path := range loose {
				kind, _ := exec.Command("sh", "-c", "cd "+h.dir+" && git rev-parse HEAD").Output()
				if !strings.HasPrefix(string(kind), filepath.Base(path)) {
					_ = os.RemoveAll(path)
				}
			}
		},
		"a submodule": func(t *testing.T, h *host, program string) {
			other := &host{Server: h.Server, t: t, dir: t.TempDir()}
			other.repository()
			git(t, h.dir, "submodule", "--quiet", "add", other.dir, "sub")
			git(t, h.dir, "commit", "-q", "-m", "m")
			git(t, filepath.Join(h.dir, "sub"), "config", "core.fsmonitor", program)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, Config{})
			h.repository()
			sprung := filepath.Join(t.TempDir(), "sprung")
			program := filepath.Join(filepath.Dir(sprung), "program")
			if err := os.WriteFile(program, []byte("#!/bin/sh\necho x >> "+sprung+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			set(t, h, program)
			_ = os.Remove(sprung) // setting a trap may spring it
			// As long as before: git has to look inside. The other one it finds
			// unchanged, which it would like to note in the index.
			h.write("a.txt", "AS COMMITTED\n")
			if err := os.Chtimes(filepath.Join(h.dir, "b.txt"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			h.inspect()
			if _, err := os.Stat(sprung); err == nil {
				t.Fatal("the repository's program was run")
			}
			user := exec.Command("git", "status")
			user.Dir = h.dir
			_ = user.Run()
			if _, err := os.Stat(sprung); err != nil {
				t.Fatal("the trap does not work")
			}
		})
	}
}

// A git in the repository is none.
func TestAGitInTheRepositoryIsNotRun(t *testing.T) {
	h := newHost(t, Config{})
	h.repository()
	h.write("bin/git", "#!/bin/sh\necho x >> sprung\n")
	if err := os.Chmod(filepath.Join(h.dir, "bin/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(h.dir, "bin")+":"+os.Getenv("PATH"))
	h.changed(0) // bin/git is new, but nobody trustworthy says so
	if _, err := os.Stat(filepath.Join(h.dir, "sprung")); err == nil {
		t.Fatal("it was run")
	}
}
