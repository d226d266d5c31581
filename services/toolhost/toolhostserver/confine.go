package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/egress"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// confiner confines the commands of a host.
type confiner struct {
	folders runFolders
	// data is the harness's folder for data, without links.
	data    string
	least   harnessv1.SandboxLevel
	pass    []string
	secrets []string // files of the harness
	mark    func() string
	// objects returns the folders in which git finds objects of a workspace that is a worktree; nil: none is.
	objects func(workspace string) []string
	// private are the hosts whose addresses need not be public, resolve resolves the names
	// of hosts; nil: as the machine does.
	private []sandbox.Host
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)

	mu      sync.Mutex
	machine confinement.Machine
	bwrap   fs.FileInfo               // of Machine.Bwrap, as it was tried
	support *harnessv1.SandboxSupport // nil: not found out yet
}

// find returns what this machine can do. It finds it out by trying, once.
func (c *confiner) find(ctx context.Context) (confinement.Machine, *harnessv1.SandboxSupport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.support == nil || c.replaced() {
		c.machine, c.support = c.probe(ctx)
	}
	return c.machine, c.support
}

// replaced reports whether bubblewrap is another file than the one that was tried.
func (c *confiner) replaced() bool {
	if c.machine.Bwrap == "" {
		return false
	}
	now, err := os.Stat(c.machine.Bwrap)
	return err != nil || !os.SameFile(now, c.bwrap) || now.Size() != c.bwrap.Size() || !now.ModTime().Equal(c.bwrap.ModTime())
}

// ProbeSandbox returns how far a tool host of this user could confine commands on this
// machine, by trying.
func ProbeSandbox(ctx context.Context) *harnessv1.SandboxSupport {
	c := &confiner{least: sandbox.Off, mark: func() string { return "probe." + disk.RandomName(8) }}
	_, support := c.find(ctx)
	return support
}

// lost forgets what this machine can do, after a confinement that could not be set up.
func (c *confiner) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.support = nil
}

// probe tries the levels from above.
func (c *confiner) probe(ctx context.Context) (confinement.Machine, *harnessv1.SandboxSupport) {
	home, _ := os.UserHomeDir()
	m := confinement.Machine{
		ABI: process.LandlockABI(), Root: os.Geteuid() == 0, Home: home, Environ: os.Environ(), Look: inspect, Pass: c.pass,
		Secrets: disk.WithoutLinks(c.secrets),
	}
	s := &harnessv1.SandboxSupport{LandlockAbi: uint32(m.ABI), Least: c.least} //nolint:gosec // small
	var why []string
	path, err := exec.LookPath("bwrap")
	if err == nil {
		c.bwrap, err = os.Stat(path)
	}
	if err != nil {
		why = append(why, "bubblewrap is not installed: install the package bubblewrap for the level full")
	} else {
		m.Bwrap = path
		m.Overlay = true
		err := c.try(ctx, m, sandbox.Full)
		if err != nil {
			m.Overlay = false
			err = c.try(ctx, m, sandbox.Full)
		}
		if err == nil {
			s.Level = sandbox.Full
			return m, s
		}
		m.Bwrap = ""
		why = append(why, "bubblewrap does not work here ("+err.Error()+"): allow unprivileged user namespaces for the level full")
	}
	s.Level = sandbox.Off
	switch err := c.try(ctx, m, sandbox.Kernel); {
	case m.ABI == 0:
		why = append(why, "the kernel has no Landlock, which the level kernel needs (Linux 5.13, with landlock among the modules in lsm=)")
	case err != nil:
		why = append(why, "the level kernel does not work here: "+err.Error())
	default:
		s.Level = sandbox.Kernel
	}
	s.Reason = strings.Join(why, "; ")
	return m, s
}

// probeTime bounds the try of a level.
const probeTime = 10 * time.Second

// try runs a command at a level.
func (c *confiner) try(ctx context.Context, m confinement.Machine, level harnessv1.SandboxLevel) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	parent := c.folders.dir // where the folders of runs will be; empty: that of temporary files
	if parent != "" {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(parent, "harness-probe-")
	if err != nil {
		return err
	}
	defer disk.RemoveAll(dir)
	workplace, outside := filepath.Join(dir, "workspace"), filepath.Join(dir, "outside")
	if err := errors.Join(os.Mkdir(workplace, 0o700), os.WriteFile(outside, []byte("reached"), 0o600)); err != nil {
		return err
	}
	run, err := c.confine(m, level, runFolder{root: dir}, workplace, nil)
	if err != nil {
		return err
	}
	// What does not confine counts as broken, whatever it reports.
	line := "if cat ../outside 2>/dev/null; then exit 1; fi; echo inside"
	var output strings.Builder
	exit, err := process.Run(ctx, process.Command{Line: line, Dir: workplace, Environ: run.Environ, Plan: run.Plan, Mark: c.mark(), Output: &output})
	switch {
	case err != nil:
		return err
	case exit.Error != "":
		return errors.New(strings.Join(strings.Fields(exit.Error+" "+output.String()), " "))
	case exit.Code != 0 || output.String() != "inside\n":
		return errors.New("a command in it reached what it must not, or failed: " + strings.Join(strings.Fields(output.String()), " "))
	}
	return nil
}

// confine makes what a command needs, and returns how it is confined.
func (c *confiner) confine(m confinement.Machine, level harnessv1.SandboxLevel, f runFolder, dir string, cfg *harnessv1.SandboxConfig) (confinement.Confinement, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return confinement.Confinement{}, err
	}
	m.Etc = names("/etc") // what is secret there must be hidden, also what is new
	var objects []string
	if c.objects != nil {
		objects = c.objects(resolved)
	}
	made := confinement.Build(m, level, confinement.Request{
		Workspace: resolved, Git: git.FoldersOutside(resolved), Objects: objects, Home: f.home(), Temporary: f.temporary(), Overlays: f.overlays(), Config: cfg, Hidden: c.data,
	})
	if made.Plan == nil {
		return made, nil
	}
	for _, folder := range []string{f.home(), f.temporary()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return made, err
		}
	}
	overlays := made.Plan.Overlays
	made.Plan.Overlays = nil
	for _, o := range overlays {
		if err := errors.Join(os.MkdirAll(o.Upper, 0o700), os.MkdirAll(o.Work, 0o700), os.MkdirAll(o.Merged, 0o700)); err != nil {
			return made, err
		}
		// What the user does not have is a folder of the run alone.
		if info, err := os.Stat(o.Lower); err == nil && info.IsDir() {
			made.Plan.Overlays = append(made.Plan.Overlays, o)
		}
	}
	if err := git.WriteConfig(f.home(), m.Home); err != nil {
		return made, err
	}
	for link, target := range made.Links {
		if err := makeLink(link, target); err != nil {
			return made, err
		}
	}
	return made, nil
}

// proxy returns the proxy of a command. It serves those alone whose plan has a listener.
func (c *confiner) proxy(cfg *harnessv1.SandboxConfig) *egress.Proxy {
	return egress.New(egress.Config{Hosts: sandbox.Hosts(cfg), Private: c.private, Resolve: c.resolve})
}

// makeLink makes a link unless there is something.
func makeLink(link, target string) error {
	if _, err := os.Lstat(target); err != nil {
		return nil //nolint:nilerr // the user has no such cache
	}
	if _, err := os.Lstat(link); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func inspect(path string) (found, folder bool) {
	info, err := os.Stat(path)
	return err == nil, err == nil && info.IsDir()
}

// names returns the names of the entries of a folder, of folders with a slash at the end.
func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	all := make([]string, len(entries))
	for i, e := range entries {
		if all[i] = e.Name(); e.IsDir() {
			all[i] += "/"
		}
	}
	return all
}

// problem returns why the commands of a run cannot be confined in a workspace as it
// demands; nil if they can.
func (c *confiner) problem(ctx context.Context, dir string, cfg *harnessv1.SandboxConfig) *harnessv1.SandboxProblem {
	m, support := c.find(ctx)
	level, err := sandbox.Choose(support, cfg)
	if err == nil && level > sandbox.Off {
		err = c.checkFolders(m, level, dir, cfg)
	}
	var field *fault.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &field):
		return &harnessv1.SandboxProblem{Field: field.Field, Message: field.Message}
	default:
		return &harnessv1.SandboxProblem{Field: "sandbox", Message: err.Error()}
	}
}

// checkFolders refuses folders that a sandbox must not open: those that are not there, that
// are links, or that hold the home or the data of the harness.
func (c *confiner) checkFolders(m confinement.Machine, level harnessv1.SandboxLevel, dir string, cfg *harnessv1.SandboxConfig) error {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if level < sandbox.Full {
		secret, folder := m.Uncovered(confinement.Request{Workspace: resolved, Config: cfg, Hidden: c.data})
		if secret != "" {
			return fault.Invalid("sandbox", "%s of the harness is in %s, which commands read, and only the level full can keep them from it: use another folder for one of them", secret, folder)
		}
	}
	for _, list := range []struct {
		field string
		paths []string
	}{{"read", cfg.GetRead()}, {"write", cfg.GetWrite()}} {
		for i, path := range list.paths {
			if err := checkFolder(m, c.data, path); err != nil {
				return fault.In(fmt.Sprintf("sandbox.%s[%d]", list.field, i), err)
			}
		}
	}
	return nil
}

func checkFolder(m confinement.Machine, data, path string) error {
	path = filepath.Clean(path)
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s does not exist", path)
	case resolved != path:
		return fmt.Errorf("%s is a link or below one: name %s", path, resolved)
	case sandbox.Within(m.Home, path):
		return fmt.Errorf("%s holds the home of the user, with keys and settings: name the folders that are needed", path)
	case sandbox.Within(data, path) || sandbox.Within(path, data):
		return fmt.Errorf("%s holds data of the harness, which commands must not reach", path)
	}
	return nil
}
