// Package command confines and runs the commands of runs: those of calls and checks, those in
// the background, and the processes of servers of tools.
//
// A command belongs to a run and works in its workspace. It runs at a sandbox level that this
// machine reaches, which is found out by trying, with a home and temporary files of its run,
// and reaches the hosts that its network names through package egress. Commands that start
// while a background command of their run is alive join the network of that one.
//
// These promises hold:
//
//   - Nothing runs less confined than its request demands, or below the stricter of the least
//     level of the operator and that of the run: then the exit is Unconfined, with the reason, and nothing ran.
//   - A level counts only if a command in it did not reach what it must not. It is tried again
//     after bubblewrap was replaced, and after a confinement that could not be set up.
//   - Two commands of a run never share the layer in which caches are changed.
//   - A command and all that it starts are dead when Run returns. Package process does that.
//
// An error of Run means that the supervisor failed: how far the command had come is not known.
package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/egress"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// Config configures Commands. Mark and Logger are required.
type Config struct {
	// Dir is the folder with those of runs; empty: that of temporary files.
	Dir string
	// Data is the harness's folder for data, without links, and Secrets are files of the harness:
	// no command reaches them.
	Data    string
	Secrets []string
	// AfterKernel is called after each command at the level kernel; may be nil.
	AfterKernel func()
	// Least is the least level at which commands run.
	Least harnessv1.SandboxLevel
	// Pass has the names of environment variables that commands inherit although they look
	// like credentials.
	Pass []string
	// Withheld has the names of those that no command gets, such as the keys of model providers.
	Withheld []string
	// Environ returns the environment of the commands of a run, by its key, as NAME=VALUE. Nil,
	// and a nil result: that of this process.
	Environ func(run string) []string
	// Mark returns the mark of a new command.
	Mark func() string
	// Objects returns the folders in which git finds objects of a workspace that is a
	// worktree; nil: none is.
	Objects func(workspace string) []string
	// Private are the hosts whose addresses need not be public.
	Private []sandbox.Host
	// Resolve resolves the names of hosts; nil: as the machine does.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	Logger  *slog.Logger
}

// Commands run the commands of a host. Many goroutines may use it.
type Commands struct {
	config   Config
	folders  runFolders
	networks networks
	confiner *confiner
	prober   *prober
}

// New returns Commands. It does not try yet what this machine can do.
func New(c Config) *Commands {
	confiner := &confiner{data: c.Data, objects: c.Objects}
	return &Commands{
		config: c, folders: runFolders{dir: c.Dir}, confiner: confiner,
		prober: &prober{confiner: confiner, dir: c.Dir, least: c.Least, pass: c.Pass, withheld: c.Withheld, secrets: c.Secrets, mark: c.Mark},
	}
}

// Find returns what this machine can do. It finds it out by trying, once.
func (c *Commands) Find(ctx context.Context) (confinement.Machine, *harnessv1.SandboxSupport) {
	return c.prober.find(ctx)
}

// Probe returns how far a tool host of this user could confine commands on this
// machine, by trying.
func Probe(ctx context.Context) *harnessv1.SandboxSupport {
	c := New(Config{Least: sandbox.Off, Mark: func() string { return "probe." + disk.RandomName(8) }})
	_, support := c.Find(ctx)
	return support
}

// Problem returns why the commands of a run cannot be confined in a workspace as it
// demands; nil if they can.
func (c *Commands) Problem(ctx context.Context, dir string, cfg *harnessv1.SandboxConfig) *harnessv1.SandboxProblem {
	m, support := c.Find(ctx)
	level, err := sandbox.Choose(support, cfg)
	if err == nil && level > sandbox.Off {
		err = c.confiner.checkFolders(m, level, dir, cfg)
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

// Request names the run of a command, its workspace and its confinement.
type Request struct {
	// Run is the key of the run.
	Run string
	// Workspace is the path of the folder that the command runs in, without links, and Folder is that
	// folder, wherever it has been moved.
	Workspace string
	Folder    *os.File
	// Confinement is the level and the sandbox. At the level AUTO the highest one is used that
	// the sandbox permits.
	Confinement *harnessv1.Confinement
}

// Exit describes how a command ended, and at which level it ran.
type Exit struct {
	process.Exit
	Level harnessv1.SandboxLevel
	// Refused returns a text about paths and hosts that the sandbox has refused to the command,
	// guessed from its output; nil if it was not confined.
	Refused func(output string) string
	// RefusedHosts is a text about the hosts that the proxy of the command refused, and how to
	// ask for them; empty for none.
	RefusedHosts string
}

// Level returns the level at which a command with a confinement is executed; full if none is, because it cannot be confined
// as is demanded.
func (c *Commands) Level(ctx context.Context, conf *harnessv1.Confinement) harnessv1.SandboxLevel {
	if conf.GetLevel() != sandbox.Auto {
		return conf.GetLevel()
	}
	_, support := c.Find(ctx)
	level, err := sandbox.Choose(support, conf.GetConfig())
	if err != nil {
		return sandbox.Full
	}
	return level
}

// Run runs a command, confined, with a mark. It sets the folder, the mark and the plan of c, and
// what c has as environment is added to that of the run. If it cannot be confined as the request
// demands, nothing runs and the exit is Unconfined.
func (c *Commands) Run(ctx context.Context, req Request, p process.Command) (Exit, error) {
	machine, support := c.Find(ctx)
	conf := req.Confinement
	level := conf.GetLevel()
	if level == sandbox.Auto {
		var err error
		if level, err = sandbox.Choose(support, conf.GetConfig()); err != nil {
			return unconfined(err.Error()), nil
		}
	}
	least := sandbox.LeastOf(support, conf.GetConfig())
	switch {
	case level > support.GetLevel() && level > sandbox.Off:
		return unconfined(fmt.Sprintf("the call is recorded at the level %s, and the tool host reaches only %s: %s",
			sandbox.Name(level), sandbox.Name(support.GetLevel()), support.GetReason())), nil
	case level < least.Level:
		return unconfined(fmt.Sprintf("%s lets nothing run below %s", least.Demander(), sandbox.Name(least.Level))), nil
	case level > sandbox.Off:
		// A command of the run may have put a link there since the run started.
		if err := c.confiner.checkFolders(machine, level, req.Workspace, conf.GetConfig()); err != nil {
			return unconfined(err.Error()), nil
		}
	}
	cfg := sandbox.WithHosts(conf.GetConfig(), conf.GetHosts())
	if level == sandbox.Kernel && len(sandbox.Hosts(cfg)) > 0 {
		return unconfined("the call is recorded at the level kernel, which cannot bound the network to named hosts"), nil
	}
	folder, release := c.folders.take(req.Run)
	defer release()
	network := c.networks.of(req.Run)
	defer network.close()
	if network != nil && !machine.Root {
		machine.Overlay = false // its namespaces cannot be below those of the network
	}
	if c.config.Environ != nil {
		if environ := c.config.Environ(req.Run); environ != nil {
			machine.Environ = environ
		}
	}
	confined, err := c.confiner.confine(machine, level, folder, req.Workspace, cfg)
	if err != nil {
		return unconfined(disk.Reason(err)), nil
	}
	p.Dir, p.Mark, p.Environ, p.Plan = disk.ByDescriptor(req.Folder), c.config.Mark(), append(slices.Clone(confined.Environ), p.Environ...), confined.Plan
	network.joins(&p, confined)
	proxy := c.proxy(cfg)
	p.Serve = proxy.Serve
	exit, err := process.Run(ctx, p)
	if level == sandbox.Kernel && c.config.AfterKernel != nil {
		c.config.AfterKernel()
	}
	if err != nil {
		c.config.Logger.Error("supervisor of a command failed", "error", err)
	}
	if exit.Unconfined {
		c.prober.forget()
	}
	ended := Exit{Exit: exit, Level: level, RefusedHosts: proxy.Refused().Text()}
	if confined.Plan != nil {
		ended.Refused = func(output string) string {
			asks := least.Level <= sandbox.Off
			return strings.TrimSpace(confined.Reach.Refused(output, asks) + " " + git.NotReached(output, req.Workspace, asks))
		}
	}
	return ended, err
}

func unconfined(why string) Exit {
	return Exit{Exit: process.Exit{Unconfined: true, Error: why}}
}

// proxy returns the proxy of a command. It serves those alone whose plan has a listener.
func (c *Commands) proxy(cfg *harnessv1.SandboxConfig) *egress.Proxy {
	return egress.New(egress.Config{Hosts: sandbox.Hosts(cfg), Private: c.config.Private, Resolve: c.config.Resolve})
}

// Tidy removes the folders of runs that are not used any more, until done is closed.
func (c *Commands) Tidy(done <-chan struct{}) { c.folders.tidy(done) }

// Share makes the network of a background command that has begun that of its run, unless the run
// has one. Commands of the run that start before Unshare join it.
func (c *Commands) Share(run string, b process.Begun) {
	if err := c.networks.share(run, b); err != nil {
		c.config.Logger.Debug("network of a background command cannot be joined", "error", err)
	}
}

// Unshare forgets the network of a run, whose last background command has ended.
func (c *Commands) Unshare(run string) { c.networks.unshare(run) }
