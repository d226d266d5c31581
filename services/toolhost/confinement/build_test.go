package confinement_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

var machine = confinement.Machine{
	ABI: 7, Bwrap: "/usr/bin/bwrap", Etc: []string{"passwd", "shadow", "ssl/", "ssh/", "resolv.conf"}, Home: "/home/me",
	Environ: []string{
		"PATH=/usr/bin:/home/me/tools/bin:/home:/", "HOME=/home/me", "LC_ALL=C", "CARGO_HOME=/cargo", "OPENAI_API_KEY=k", "DATABASE_URL=d", "HARNESS_X=x", "LD_PRELOAD=/x.so", "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ours.pem", "PYTHONDONTWRITEBYTECODE=1",
	},
}

func request(c *harnessv1.SandboxConfig) confinement.Request {
	return confinement.Request{Workspace: "/home/me/project", Home: "/data/tools/sandbox/r/home", Temporary: "/data/tools/sandbox/r/tmp", Hidden: "/data/tools", Config: c}
}

// TestNoCredentialIsReadable at any level, with and without network.
func TestNoCredentialIsReadable(t *testing.T) {
	for _, mode := range []harnessv1.SandboxNetworkMode{harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_NONE, harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL} {
		c := confinement.Build(machine, sandbox.Kernel, request(&harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: mode}}))
		for _, secret := range []string{
			"/etc/shadow", "/etc/ssh/ssh_host_rsa_key", "/etc/ssl/private/key.pem", "/home/me/.ssh/id_ed25519", "/home/me/.netrc", "/home/me/.npmrc", "/home/me/.aws/credentials",
			"/home/me/.config/gh/hosts.yml", "/cargo/credentials.toml", "/home/me/.gradle/gradle.properties", "/home/me/.m2/settings.xml", "/home/me/.gem/credentials",
			"/home/me/other/main.go", "/data/tools/ledger.db", "/data/gateway.key", "/home/me/.docker/config.json", "/home/me/.kube/config", "/home/me/.gnupg/x",
		} {
			for _, folder := range slices.Concat(c.Plan.Read, c.Plan.Write, paths(c.Plan.Folders)) {
				if sandbox.Within(secret, folder) {
					t.Errorf("%s is in %s", secret, folder)
				}
			}
		}
		if !slices.Contains(c.Plan.Read, "/home/me/tools/bin") || !slices.Contains(c.Plan.Read, "/etc/passwd") || !slices.Equal(c.Plan.Folders, []supervisor.Folder{{Write: true}}) {
			t.Errorf("reads %v, writes %v, and %v", c.Plan.Read, c.Plan.Write, c.Plan.Folders)
		}
	}
}

func paths(folders []supervisor.Folder) (all []string) {
	for _, f := range folders {
		all = append(all, cmp.Or(f.Path, "/home/me/project"))
	}
	return all
}

// TestWhatRunsCanExchangeIsNamedByDescriptor: no option of bubblewrap names the source of the workspace, or
// of a folder that the run opens, by a path, because another run can put a link there at any moment.
func TestWhatRunsCanExchangeIsNamedByDescriptor(t *testing.T) {
	t.Parallel()
	r := request(&harnessv1.SandboxConfig{Read: []string{"/srv/data"}, Write: []string{"/srv/out"}})
	r.Git, r.Objects = []string{"/home/me/other/.git"}, []string{"/home/me/objects"}
	mine := []string{"/home/me/project", "/srv/data", "/srv/out", "/home/me/other/.git", "/home/me/objects"}
	worktree := r
	worktree.Workspace = "/data/tools/worktrees/w/files"
	for name, r := range map[string]confinement.Request{"workspace": r, "worktree": worktree} {
		mine := append(mine, r.Workspace)
		plan := confinement.Build(machine, sandbox.Full, r).Plan
		used := 0
		for i, option := range plan.Bwrap {
			switch {
			case option == "--bind-fd" || option == "--ro-bind-fd":
				folder := plan.Folders[used]
				if plan.Bwrap[i+1] != supervisor.FolderArgument(used) || cmp.Or(folder.Path, r.Workspace) != plan.Bwrap[i+2] || folder.Write != (option == "--bind-fd") {
					t.Errorf("%s: %v names %+v", name, plan.Bwrap[i:i+3], folder)
				}
				used++
			case strings.Contains(option, "bind") && slices.Contains(mine, plan.Bwrap[i+1]):
				t.Errorf("%s: %v names it by its path", name, plan.Bwrap[i:i+3])
			}
		}
		if used != len(plan.Folders) || used < 5 {
			t.Errorf("%s: %d of %+v are named", name, used, plan.Folders)
		}
	}
}

// TestCommandsWithoutSandboxHaveTheUsersFolders, by which they find caches and settings.
func TestCommandsWithoutSandboxHaveTheUsersFolders(t *testing.T) {
	environ := confinement.Build(machine, sandbox.Off, request(nil)).Environ
	for _, want := range []string{"HOME=/home/me", "CARGO_HOME=/cargo"} {
		if !slices.Contains(environ, want) {
			t.Errorf("%v lacks %s", environ, want)
		}
	}
}

// TestCachesAreWhereTheUserHasThem, because compilers look them up by path. Of those with other
// entries only the parts without credentials are there, and none of them is in a folder that the
// command has otherwise.
func TestCachesAreWhereTheUserHasThem(t *testing.T) {
	m := machine
	m.Overlay = true
	for name, c := range map[string]struct {
		read, write []string
		want        string
	}{
		"alone":                {nil, nil, "/cargo"},
		"in a readable folder": {[]string{"/cargo"}, nil, "/run/harness/caches/.cargo"},
		"in a writable folder": {nil, []string{"/cargo"}, "/run/harness/caches/.cargo"},
	} {
		made := confinement.Build(m, sandbox.Full, request(&harnessv1.SandboxConfig{Read: c.read, Write: c.write}))
		argv := strings.Join(made.Plan.Bwrap, " ")
		if !slices.Contains(made.Environ, "CARGO_HOME="+c.want) || !strings.Contains(argv, " "+c.want+"/registry ") {
			t.Errorf("%s: want %s, got %v and %s", name, c.want, made.Environ, argv)
		}
		if c.read == nil && c.write == nil && strings.Contains(argv, " /cargo ") {
			t.Errorf("%s: all of it is bound: %s", name, argv)
		}
	}
}

// TestManagersFindTheUsersToolchains although the home is the command's own.
func TestManagersFindTheUsersToolchains(t *testing.T) {
	m := machine
	m.Look = func(path string) (found, folder bool) { return path == "/home/me/.rustup", path == "/home/me/.rustup" }
	for _, level := range []harnessv1.SandboxLevel{sandbox.Kernel, sandbox.Full} {
		environ := strings.Join(confinement.Build(m, level, request(nil)).Environ, "\n")
		if !strings.Contains(environ, "RUSTUP_HOME=/home/me/.rustup") || strings.Contains(environ, "PYENV_ROOT") {
			t.Errorf("%s: %s", sandbox.Name(level), environ)
		}
	}
}

// TestEnvironmentIsAnAllowList at every level.
func TestEnvironmentIsAnAllowList(t *testing.T) {
	m := machine
	m.Withheld = []string{"OPENAI_API_KEY"}
	for _, level := range []harnessv1.SandboxLevel{sandbox.Off, sandbox.Kernel, sandbox.Full} {
		environ := strings.Join(confinement.Build(m, level, request(&harnessv1.SandboxConfig{Env: []string{"DATABASE_URL", "OPENAI_API_KEY", "HARNESS_X"}})).Environ, "\n") + "\n"
		for _, want := range []string{"PATH=/usr/bin:", "LC_ALL=C\n", "DATABASE_URL=d\n", "TERM=dumb\n", "PWD=/home/me/project\n", "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ours.pem\n", "PYTHONDONTWRITEBYTECODE=1\n"} {
			if !strings.Contains(environ, want) {
				t.Errorf("%s lacks %q:\n%s", sandbox.Name(level), want, environ)
			}
		}
		for _, hidden := range []string{"OPENAI_API_KEY", "HARNESS_X", "LD_PRELOAD"} {
			if strings.Contains(environ, hidden) {
				t.Errorf("%s has %s", sandbox.Name(level), hidden)
			}
		}
	}
}

// TestSocketsByLevel: unix sockets are only there where they reach nothing outside.
func TestSocketsByLevel(t *testing.T) {
	all := &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL}}
	kernel, full := confinement.Build(machine, sandbox.Kernel, request(nil)).Plan, confinement.Build(machine, sandbox.Full, request(nil)).Plan
	if kernel.Unix || kernel.Internet || !full.Unix || full.Internet || !slices.Contains(full.Bwrap, "--unshare-net") {
		t.Errorf("got %+v and %+v", kernel, full)
	}
	if open := confinement.Build(machine, sandbox.Full, request(all)).Plan; !open.Internet || slices.Contains(open.Bwrap, "--unshare-net") {
		t.Errorf("with network: %+v", open)
	}
}

// TestSecretsOfEtcAreHiddenAtFull: each is covered by an empty file or folder.
func TestSecretsOfEtcAreHiddenAtFull(t *testing.T) {
	argv := strings.Join(confinement.Build(machine, sandbox.Full, request(&harnessv1.SandboxConfig{Read: []string{"/etc/ssh/ssh_config"}})).Plan.Bwrap, " ")
	all := strings.Index(argv, "--ro-bind /etc /etc")
	for _, hidden := range []string{"--ro-bind /dev/null /etc/shadow", "--tmpfs /etc/ssh", "--tmpfs /etc/ssl"} {
		if at := strings.Index(argv, hidden); all < 0 || at < all {
			t.Errorf("%q does not follow /etc in %s", hidden, argv)
		}
	}
	if opened := strings.Index(argv, "--ro-bind-fd 11 /etc/ssh/ssh_config"); opened < strings.Index(argv, "--tmpfs /etc/ssh") {
		t.Errorf("what the run opens is hidden: %s", argv)
	}
}

// TestNamedHostsNeedTheProxy: the command has a network with nothing else in it.
func TestNamedHostsNeedTheProxy(t *testing.T) {
	hosts := &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, Hosts: []string{"example.com"}}}
	c := confinement.Build(machine, sandbox.Full, request(hosts))
	environ := strings.Join(c.Environ, "\n") + "\n"
	if c.Plan.Listen != "127.0.0.1:61080" || c.Plan.Internet || !slices.Contains(c.Plan.Bwrap, "--unshare-net") || !c.Reach.Proxy {
		t.Errorf("got %+v", c.Plan)
	}
	for _, want := range []string{"https_proxy=http://127.0.0.1:61080\n", "HTTP_PROXY=", "ALL_PROXY=", "NO_PROXY=localhost,127.0.0.1,::1\n", "NODE_USE_ENV_PROXY=1\n"} {
		if !strings.Contains(environ, want) {
			t.Errorf("lacks %s:\n%s", want, environ)
		}
	}
	without := confinement.Build(machine, sandbox.Full, request(nil))
	if environ := strings.Join(without.Environ, "\n"); without.Plan.Listen != "" || strings.Contains(environ, "_PROXY=") {
		t.Errorf("without network: %+v\n%s", without.Plan, environ)
	}
}
