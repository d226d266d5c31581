package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// prober finds out how far this machine can confine commands. Many goroutines may use it.
type prober struct {
	confiner *confiner
	// dir is where the folders of runs will be; empty: that of temporary files.
	dir      string
	least    harnessv1.SandboxLevel
	pass     []string
	withheld []string
	secrets  []string // files of the harness
	mark     func() string

	mu      sync.Mutex
	machine confinement.Machine
	bwrap   os.FileInfo               // of Machine.Bwrap, as it was tried
	support *harnessv1.SandboxSupport // nil: not found out yet
}

// find returns what this machine can do. It finds it out by trying, once.
func (p *prober) find(ctx context.Context) (confinement.Machine, *harnessv1.SandboxSupport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.support == nil || p.replaced() {
		p.machine, p.support = p.probe(ctx)
	}
	return p.machine, p.support
}

// replaced reports whether bubblewrap is another file than the one that was tried.
func (p *prober) replaced() bool {
	if p.machine.Bwrap == "" {
		return false
	}
	now, err := os.Stat(p.machine.Bwrap)
	return err != nil || !os.SameFile(now, p.bwrap) || now.Size() != p.bwrap.Size() || !now.ModTime().Equal(p.bwrap.ModTime())
}

// forget drops what this machine can do, after a confinement that could not be set up.
func (p *prober) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.support = nil
}

// probe tries the levels from above.
func (p *prober) probe(ctx context.Context) (confinement.Machine, *harnessv1.SandboxSupport) {
	home, _ := os.UserHomeDir()
	m := confinement.Machine{
		ABI: process.LandlockABI(), Root: os.Geteuid() == 0, Home: home, Environ: os.Environ(), Look: inspect, Pass: p.pass, Withheld: p.withheld,
		Secrets: disk.WithoutLinks(p.secrets),
	}
	s := &harnessv1.SandboxSupport{LandlockAbi: uint32(m.ABI), Least: p.least} //nolint:gosec // small
	var why []string
	path, err := exec.LookPath("bwrap")
	if err == nil {
		p.bwrap, err = os.Stat(path)
	}
	if err != nil {
		why = append(why, "bubblewrap is not installed: install the package bubblewrap for the level full")
	} else {
		m.Bwrap = path
		m.Overlay = true
		err := p.try(ctx, m, sandbox.Full)
		if err != nil {
			m.Overlay = false
			err = p.try(ctx, m, sandbox.Full)
		}
		if err == nil {
			s.Level = sandbox.Full
			return m, s
		}
		m.Bwrap = ""
		if strings.Contains(err.Error(), "--bind-fd") {
			why = append(why, "bubblewrap is too old for the level full: it has no --bind-fd, without which a folder can be exchanged while it is mounted: install version 0.10 or newer, or a package of your system with the fix of CVE-2024-42472")
		} else {
			why = append(why, "bubblewrap does not work here ("+err.Error()+"): allow unprivileged user namespaces for the level full")
		}
	}
	s.Level = sandbox.Off
	switch err := p.try(ctx, m, sandbox.Kernel); {
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
func (p *prober) try(ctx context.Context, m confinement.Machine, level harnessv1.SandboxLevel) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	parent := p.dir
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
	folder, err := os.Open(workplace)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	workplace = disk.PathOf(folder)
	run, err := p.confiner.confine(m, level, runFolder{root: dir}, workplace, nil)
	if err != nil {
		return err
	}
	// What does not confine counts as broken, whatever it reports.
	line := "if cat ../outside 2>/dev/null; then exit 1; fi; echo inside"
	var output strings.Builder
	exit, err := process.Run(ctx, process.Command{Line: line, Dir: disk.ByDescriptor(folder), Environ: run.Environ, Plan: run.Plan, Mark: p.mark(), Output: &output})
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

func inspect(path string) (found, folder bool) {
	info, err := os.Stat(path)
	return err == nil, err == nil && info.IsDir()
}
