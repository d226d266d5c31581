// Package confinement decides what one command of an agent can reach at a level: which files
// it reads and writes, which network and which variables it has. It is pure: the tool host
// looks at the machine and its folders, and the supervisor of a command sets the decision up.
package confinement

import (
	"path/filepath"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// Machine describes the machine of the tool host.
type Machine struct {
	// ABI is the version of Landlock of the kernel.
	ABI int
	// Bwrap is the path of a bubblewrap that works; empty for none. Overlay is true if its
	// commands can have overlays.
	Bwrap   string
	Overlay bool
	// Root is true if commands run as root.
	Root bool
	// Etc are the names of the entries of /etc, of folders with a slash at the end.
	Etc []string
	// Home is the home of the user that commands run as.
	Home string
	// Environ is the environment of the tool host.
	Environ []string
	// Look reports whether the user can look at a path, and whether it is a folder; nil: each
	// is one. Bubblewrap does not start with a path that it cannot bind.
	Look func(path string) (found, folder bool)
	// Secrets are files of the harness that no command reads, absolute and without links.
	Secrets []string
	// Pass are the names of variables that every command gets, too.
	Pass []string
	// Withheld are the names of variables that no command gets, although its run names them.
	Withheld []string
}

// Request is what a command wants to run with.
type Request struct {
	// Workspace is its folder, absolute and without links. Git has the folders of its
	// repository that are outside of it: the command writes them too.
	Workspace string
	Git       []string
	// Objects are folders outside of it with objects of its repository. The command reads them.
	Objects []string
	// Home and Temporary are the command's own folders. They are in Hidden, of which the
	// command reaches nothing else.
	Home, Temporary string
	Hidden          string
	// Overlays is the folder for changes of caches, in Hidden. One command at a time uses it.
	Overlays string
	Config   *harnessv1.SandboxConfig
}

// Confinement is the decision for one command.
type Confinement struct {
	Plan    *supervisor.Plan
	Environ []string
	// Reach has the paths and hosts that the command can reach; without a plan all.
	Reach Reach
	// Links are symbolic links to make in the command's own home: where, and to what.
	// They lead to caches of the user that can be read.
	Links map[string]string
}

// Build returns the confinement of a command at a level. At the level off it is the
// environment alone.
func Build(m Machine, level harnessv1.SandboxLevel, r Request) Confinement {
	e := &environment{all: m.Environ}
	c := Confinement{Environ: e.allowed(append(m.named(r.Config), m.Pass...))}
	c.Environ = append(c.Environ, "PWD="+r.Workspace)
	if level < sandbox.Kernel {
		c.Environ = append(c.Environ, e.ofUser(m.Home)...)
		return c
	}
	internet := r.Config.GetNetwork().GetMode() == harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL
	hosts := r.Config.GetNetwork().GetMode() == harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS
	overlaid := level == sandbox.Full && m.Overlay
	write := slices.Concat([]string{r.Workspace, r.Home, r.Temporary}, r.Git, r.Config.GetWrite())
	var cached cacheFolders
	if overlaid {
		cached = m.overlays(e, r, slices.Concat(systemFolders, m.toolchains(e), r.Config.GetRead(), write, []string{"/tmp", "/etc"}))
	} else {
		cached, c.Links = m.caches(e, r, internet || hosts)
	}
	temporary := r.Temporary
	if level == sandbox.Full {
		temporary = "/tmp"
	}
	c.Environ = append(c.Environ, "HOME="+r.Home, "TMPDIR="+temporary)
	c.Environ = append(c.Environ, cached.environ...)
	c.Environ = append(c.Environ, m.managers(e)...)
	read := slices.Concat(systemFolders, m.toolchains(e), cached.read)
	c.Reach = Reach{Read: slices.Concat(m.etc(), read, r.Config.GetRead(), r.Objects), Write: write, Internet: internet, Proxy: hosts, Asks: level == sandbox.Full}
	c.Plan = &supervisor.Plan{ABI: m.ABI, Internet: internet, Limits: limits(r.Config.GetLimits()), Bounds: bounds(r)}
	if level == sandbox.Full {
		c.Reach.Write = append(c.Reach.Write, "/tmp") // its own
		// With network a command is in the machine's network namespace, whose abstract sockets
		// an older Landlock does not keep it from.
		c.Plan.Unix = !internet || m.ABI >= supervisor.ABIScopes
		if hosts {
			c.Plan.Listen = proxyAddress
			c.Environ = append(c.Environ, proxyVariables()...)
		}
		c.Plan.Bwrap, c.Plan.Folders = m.bwrap(r, read, cached.binds, internet)
		c.Plan.Overlays = cached.overlays
		return c
	}
	c.Plan.Unix = m.ABI >= supervisor.ABIUnix
	c.Plan.Read, c.Plan.Write, c.Plan.Device = slices.Concat(m.etc(), read, kernelFolders), []string{r.Home, r.Temporary}, devices
	var named folders
	for _, path := range r.written() {
		named.add(r, path, true)
	}
	for _, path := range slices.Concat(r.Config.GetRead(), r.Objects) {
		named.add(r, path, false)
	}
	c.Plan.Folders = named
	return c
}

// written returns the paths that the command writes apart from its own folders.
func (r Request) written() []string {
	return slices.Concat([]string{r.Workspace}, r.Git, r.Config.GetWrite())
}

// folders are those of a plan.
type folders []supervisor.Folder

// add adds a path and returns how the options of bubblewrap name it. The supervisor is started in
// the workspace.
func (f *folders) add(r Request, path string, write bool) string {
	named := supervisor.Folder{Path: path, Write: write}
	if path == r.Workspace {
		named.Path = ""
	}
	*f = append(*f, named)
	return supervisor.FolderArgument(len(*f) - 1)
}

// managers returns the variables by which managers of toolchains find the toolchains of the
// user, because they look in the home otherwise, which is the command's own.
func (m Machine) managers(e *environment) []string {
	var out []string
	for _, t := range toolchains {
		folder := e.folder(t.variable, m.Home, t.relative)
		if !managed[t.variable] || e.get(t.variable) != "" || m.Look == nil {
			continue
		}
		if _, found := m.Look(folder); found {
			out = append(out, t.variable+"="+folder)
		}
	}
	return out
}

// etc returns the entries of /etc that every command reads.
func (m Machine) etc() []string {
	var read []string
	for _, name := range m.Etc {
		switch name = strings.TrimSuffix(name, "/"); {
		case secretsOfEtc[name], slices.ContainsFunc(m.Secrets, func(path string) bool { return sandbox.Within(path, "/etc/"+name) }):
		case name == "ssl":
			read = append(read, "/etc/ssl/certs", "/etc/ssl/openssl.cnf")
		default:
			read = append(read, "/etc/"+name)
		}
	}
	return read
}

// secrets returns the options of bubblewrap that hide the secrets of /etc. To bind its entries
// one by one would take ten times as long as everything else.
func (m Machine) secrets() []string {
	var argv []string
	for _, name := range m.Etc {
		plain, folder := strings.CutSuffix(name, "/")
		switch {
		case plain == "ssl":
			argv = append(argv, "--tmpfs", "/etc/ssl", "--ro-bind-try", "/etc/ssl/certs", "/etc/ssl/certs", "--ro-bind-try", "/etc/ssl/openssl.cnf", "/etc/ssl/openssl.cnf")
		case !secretsOfEtc[plain]:
		case folder:
			argv = append(argv, "--tmpfs", "/etc/"+plain)
		default:
			argv = append(argv, "--ro-bind", "/dev/null", "/etc/"+plain)
		}
	}
	return argv
}

// toolchains returns the folders of the user's toolchains, and those of PATH that are
// outside of the home.
func (m Machine) toolchains(e *environment) []string {
	var read []string
	for _, t := range toolchains {
		folder := e.folder(t.variable, m.Home, t.relative)
		if len(t.parts) == 0 {
			read = append(read, folder)
		}
		for _, part := range t.parts {
			read = append(read, filepath.Join(folder, part))
		}
	}
	for _, entry := range filepath.SplitList(e.get("PATH")) {
		entry = filepath.Clean(entry)
		if filepath.IsAbs(entry) && entry != "/" && !sandbox.Within(m.Home, entry) && !covers(systemFolders, entry) {
			read = append(read, entry)
		}
	}
	return read
}

// cacheFolders are the caches of a command.
type cacheFolders struct {
	read, environ []string
	// overlays, and where in the sandbox each is bound: pairs of Merged and a path.
	overlays []supervisor.Overlay
	binds    []string
}

// cacheRoot is a folder that only exists in the sandbox. Bubblewrap makes a new one for each
// command, so that no command can have put a link there for something to be mounted on.
const cacheRoot = "/run/harness/caches"

// overlays returns the caches of the user, with the changes of the run on top. Each is where the
// user has it, because its path is part of what compilers look up: Cargo builds all again if that
// of its registry changes. A cache with other entries, which can be credentials, is below
// cacheRoot if it is in a folder that is bound.
func (m Machine) overlays(e *environment, r Request, bound []string) cacheFolders {
	var c cacheFolders
	for _, k := range caches {
		users, seen := e.folder(k.variable, m.Home, k.relative), filepath.Join(cacheRoot, k.own)
		parts := k.parts
		if len(parts) == 0 {
			parts = []string{""}
		}
		if len(k.parts) == 0 || !covers(bound, users) {
			seen = users
		}
		c.environ = append(c.environ, k.variable+"="+seen)
		for _, part := range parts {
			own := filepath.Join(r.Overlays, strings.ReplaceAll(filepath.Join(k.own, part), "/", "_"))
			o := supervisor.Overlay{
				Lower: filepath.Join(users, part), Upper: filepath.Join(own, "upper"), Work: filepath.Join(own, "work"), Merged: filepath.Join(own, "merged"),
			}
			if strings.ContainsAny(o.Lower+o.Upper, ",:\\") {
				continue // the options of a mount cannot name it
			}
			c.overlays = append(c.overlays, o)
			c.binds = append(c.binds, o.Merged, filepath.Join(seen, part))
		}
	}
	return c
}

// caches returns the caches of a command: its own, which show what the user's have. With
// network it can fill its own.
func (m Machine) caches(e *environment, r Request, internet bool) (cacheFolders, map[string]string) {
	var c cacheFolders
	links := map[string]string{}
	for _, k := range caches {
		users, own := e.folder(k.variable, m.Home, k.relative), filepath.Join(r.Home, k.own)
		if k.variable == "GOMODCACHE" && !internet {
			c.read, c.environ = append(c.read, users), append(c.environ, k.variable+"="+users)
			continue
		}
		c.environ = append(c.environ, k.variable+"="+own)
		if internet {
			continue
		}
		for _, part := range k.parts {
			c.read = append(c.read, filepath.Join(users, part))
			links[filepath.Join(own, part)] = filepath.Join(users, part)
		}
	}
	return c, links
}

// defaultFiles bounds the open files of a process, defaultTasks the processes and threads of
// a command.
const (
	defaultFiles = 65_536
	defaultTasks = 4_096
)

// Numbers of limits of setrlimit(2) on Linux.
const (
	limitCPU       = 0
	limitFileSize  = 1
	limitCore      = 4
	limitOpenFiles = 7
)

// limits returns the limits of each process.
func limits(l *harnessv1.SandboxLimits) []supervisor.Limit {
	files := uint64(l.GetOpenFiles())
	if files == 0 {
		files = defaultFiles
	}
	all := []supervisor.Limit{{Resource: limitCore, Max: 0}, {Resource: limitOpenFiles, Max: files}}
	if l.GetFileBytes() > 0 {
		all = append(all, supervisor.Limit{Resource: limitFileSize, Max: l.GetFileBytes()})
	}
	if seconds := l.GetCpu().AsDuration().Seconds(); seconds > 0 {
		all = append(all, supervisor.Limit{Resource: limitCPU, Max: uint64(max(1, seconds))})
	}
	return all
}

// bounds returns the limits of all processes of a command together.
func bounds(r Request) *supervisor.Bounds {
	l := r.Config.GetLimits()
	b := &supervisor.Bounds{Tasks: int(l.GetProcesses()), MemoryBytes: l.GetMemoryBytes(), Folder: r.Temporary, FolderBytes: l.GetTemporaryBytes()}
	if b.Tasks == 0 {
		b.Tasks = defaultTasks
	}
	return b
}

// bwrap returns the command line of bubblewrap, and the folders that it names by descriptor: those
// which a command of another run may exchange at any moment. A command's /proc, /dev, /tmp and
// namespaces are its own.
func (m Machine) bwrap(r Request, read, caches []string, internet bool) ([]string, []supervisor.Folder) {
	var named folders
	argv := []string{m.Bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--new-session", "--cap-drop", "ALL"}
	if m.Root { // files of other users in the workspace stay usable, as without a sandbox
		argv = append(argv, "--cap-add", "CAP_DAC_OVERRIDE")
	} else {
		argv = append(argv, "--unshare-user")
	}
	if !internet {
		argv = append(argv, "--unshare-net")
	}
	// The workspace can be below /tmp, so that comes first.
	argv = append(argv, "--proc", "/proc", "--dev", "/dev", "--ro-bind-try", "/sys", "/sys", "--bind", r.Temporary, "/tmp")
	argv = append(append(argv, "--ro-bind", "/etc", "/etc"), m.secrets()...)
	if m.Root { // root of the machine can write them, whatever its capabilities
		for _, path := range kernelSettings {
			argv = append(argv, "--ro-bind-try", path, path)
		}
	}
	byRun := slices.Concat(r.Config.GetRead(), r.Objects)
	read = slices.Concat(read, byRun)
	slices.Sort(read) // a folder before its entries
	var bound []string
	for _, path := range read {
		if found, _ := m.inspect(path); !found || covers(bound, path) {
			continue
		}
		bound = append(bound, path)
		if slices.Contains(byRun, path) {
			argv = append(argv, "--ro-bind-fd", named.add(r, path, false), path)
		} else {
			argv = append(argv, "--ro-bind-try", path, path)
		}
	}
	write := r.written()
	slices.Sort(write)
	for _, path := range slices.Compact(write) {
		argv = append(argv, "--bind-fd", named.add(r, path, true), path)
	}
	hide := r.hide()
	secrets := append([]string{r.Hidden}, m.Secrets...)
	argv = append(argv, named.pin(r, write, slices.Concat(secrets, hide))...)
	for _, path := range secrets {
		if covers(write, path) || covers(bound, path) || sandbox.Within(path, "/etc") {
			argv = append(argv, m.cover(path)...)
		}
	}
	if sandbox.Within(r.Workspace, r.Hidden) && r.Workspace != r.Hidden { // a worktree of the tool host
		argv = append(argv, "--bind-fd", named.add(r, r.Workspace, true), r.Workspace)
		argv = append(argv, named.pin(r, []string{r.Workspace}, hide)...)
		for _, path := range r.Objects {
			argv = append(argv, "--ro-bind-fd", named.add(r, path, false), path)
		}
	}
	argv = append(argv, "--bind", r.Home, r.Home)
	for pair := range slices.Chunk(caches, 2) {
		argv = append(argv, "--bind", pair[0], pair[1])
	}
	for _, path := range hide {
		argv = append(argv, m.cover(path)...)
	}
	return append(argv, "--chdir", r.Workspace), named
}

// get returns the value of a variable, empty if it is not set.
func (e *environment) get(name string) string {
	for _, pair := range slices.Backward(e.all) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// folder returns the folder that a variable names, or the one below home.
func (e *environment) folder(variable, home, relative string) string {
	if variable != "" {
		if value := e.get(variable); filepath.IsAbs(value) {
			return filepath.Clean(value)
		}
	}
	return filepath.Join(home, relative)
}

// Passes reports whether commands may get a variable that their run does not name.
func Passes(name string) bool {
	return variables[name] || strings.HasPrefix(name, "LC_") || name == "HOME" || slices.Contains(userVariables(), name) ||
		slices.ContainsFunc(toolchains, func(t toolchain) bool { return t.variable == name })
}

// named returns the variables that a run names and may have: the settings of the harness are for no command.
func (m Machine) named(c *harnessv1.SandboxConfig) []string {
	return slices.DeleteFunc(slices.Clone(c.GetEnv()), func(name string) bool {
		return slices.Contains(m.Withheld, name) || strings.HasPrefix(name, "HARNESS_")
	})
}

// allowed returns the variables that every command gets, and those with a name in more.
func (e *environment) allowed(more []string) []string {
	fixed := []string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
	var out []string
	for _, pair := range e.all {
		name, _, _ := strings.Cut(pair, "=")
		if variables[name] || strings.HasPrefix(name, "LC_") || slices.Contains(more, name) {
			out = append(out, pair)
		}
	}
	return append(out, fixed...)
}

// userVariables are the variables of ofUser, without HOME.
func userVariables() []string {
	names := []string{"TMPDIR", "GOPATH"}
	for _, k := range caches {
		names = append(names, k.variable)
	}
	return names
}

// ofUser returns the variables that name folders of the user: the home, caches and toolchains.
// Confined commands have their own.
func (e *environment) ofUser(home string) []string {
	out := []string{"HOME=" + home}
	for _, name := range userVariables() {
		if value := e.get(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// covers reports whether one of folders contains a path.
func covers(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return sandbox.Within(path, folder) })
}
