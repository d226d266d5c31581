// Package toolhostserver is the tool host: it serves ToolHostService over
// workspaces of this machine and is the only place where tools have effects.
//
// The server makes jobs of requests and composes rooms: packages below it, each with its own type
// and its own lock. A room never imports the server, and gets
// what it needs from another one in its Config:
//
//   - ledger: what happened to calls, durably
//   - calls: admits calls, runs each once, and cancels them
//   - git: runs git on repositories that are not trusted
//   - worktree: the worktrees of sub-agents, and their merges
//   - command: the commands of runs, how they are confined, and what they reach; its package
//     background has those that outlive their call, process what starts and kills them
//   - mcp: servers of tools, and what they may have of this machine; mcpclient is their client
//   - files: what workspaces have for agents, and what a call must not write in them; workspace
//     keeps every access inside, and guard puts back what commands must not change
//
// The tools are in package tools, one file each. A call is an entry of a durable ledger,
// identified by namespace, run, first sequence of the run and call id. These promises
// hold, also over crashes:
//
//   - A call of a tool that is not idempotent has its effect at most once: its mark is
//     stored before the effect begins, its result before it is returned. If an earlier
//     process left a mark, the outcome is UNKNOWN.
//   - A second request for a call joins the running one or gets its result. The end of
//     a request never ends the call; its time limit, CancelTools and Close do.
//   - CancelTools returns when no process of the calls is running, and none of them can
//     start later. Its response lists the calls with an unknown effect.
//   - Processes of an earlier host at this place are dead before a host serves, even if
//     the ledger was lost in between.
//   - File tools access no file outside the workspace, whatever links there are: every
//     access goes through os.Root.
//   - A check, which is a command of the harness, is an entry of the same ledger and
//     runs as commands do. Models cannot run checks.
//   - A repository's own configuration runs no program: git uses another one.
//   - A call does not choose what git runs for the user: package guard compares
//     configuration and hooks before and after it, also if this process is killed, and puts
//     back what must not change.
//   - No tool reaches the harness's own data, wherever its folder is moved.
//   - A command and all processes that it starts die together, also when this process
//     is killed. Package process describes how, and what this does not cover.
//
// A mistake of the model is a result with is_error. The errors are INVALID_ARGUMENT for
// a request that is a caller's mistake, and UNAVAILABLE if the ledger cannot be written
// (then nothing ran), if processes of an earlier host cannot be killed, and while the
// host is draining or closing.
package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/calls"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/background"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/files"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcp"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/worktree"
)

// role is the name of this role at failpoints.
const role = workflow.ToolHost

// Config configures a Server. Only Dir is required.
type Config struct {
	// Dir is the folder of the ledger. It is created if it is missing. Only one host at
	// a time can use it.
	Dir string
	// Data is the harness's folder for data, which no tool and no command reaches. Default:
	// Dir.
	Data string
	// Tools that the host runs, in the order in which models see them. Default:
	// tools.All().
	Tools []tools.Tool
	// Sync syncs the ledger and written files to disk, so that they survive a loss of
	// power. It costs some milliseconds per effect.
	Sync bool
	// KeepResults is how long results are kept in the ledger. Older ones are forgotten
	// when the host starts; their outcome is UNKNOWN then. Default 30 days.
	KeepResults time.Duration
	// PassEnvironment has the names of environment variables that commands inherit
	// although they look like credentials.
	PassEnvironment []string
	// Environment returns the environment of the commands of a run, NAMESPACE/RUN, as
	// NAME=VALUE. Nil, and a nil result: that of this process.
	Environment func(run string) []string
	// SandboxLeast is the least level at which commands run. Default OFF.
	SandboxLeast harnessv1.SandboxLevel
	// SandboxPrivateHosts are hosts that commands may reach although their addresses are
	// not public, if the run names them too. They are written as those of a run.
	SandboxPrivateHosts []string
	// Secrets are files of the harness that no command reads, wherever they are.
	Secrets []string
	// AfterKernel is called after each command at the level kernel, which runs as this user and can change the
	// modes of files that it does not read; may be nil.
	AfterKernel func()
	// Tokens is the folder of the tokens of servers at which persons have signed in; hosts of one
	// user may share it. Default: servers/tokens in Dir.
	Tokens string
	// Withheld are names of variables that commands and servers of runs never get, such as the
	// keys of model providers.
	Withheld []string
	// Services are the tool services that each run has, with the address and the trust of each.
	Services []*harnessv1.McpServer
	// Remote has the options of connections to tool services. Default: an empty one.
	Remote *remote.Pool
	// ServerIdle is after how long without a call the process of a server of tools is stopped. Default:
	// 5 minutes.
	ServerIdle time.Duration
	// Limits of calls; zero fields mean defaults.
	Limits toolhost.Limits
	// Logger; default: discards.
	Logger *slog.Logger

	// resolve resolves the names of hosts of commands; nil: as the machine does.
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)
}

func (c Config) withDefaults() Config {
	if c.KeepResults == 0 {
		c.KeepResults = 30 * 24 * time.Hour
	}
	if c.Tools == nil {
		c.Tools = tools.All()
	}
	if c.Data == "" {
		c.Data = c.Dir
	}
	if c.Tokens == "" {
		c.Tokens = filepath.Join(c.Dir, "servers", "tokens")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Remote == nil {
		c.Remote = &remote.Pool{}
	}
	c.Limits = c.Limits.WithDefaults()
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	c = c.withDefaults()
	if c.Dir == "" {
		return errors.New("dir: missing; set the folder of the ledger")
	}
	if c.KeepResults < 0 {
		return fmt.Errorf("keep_results: %v must not be negative", c.KeepResults)
	}
	if _, err := c.privateHosts(); err != nil {
		return err
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	return nil
}

// environ returns the environment of the commands of a run, by its key; nil: that of this process.
func (c Config) environ(run string) []string {
	if c.Environment == nil {
		return nil
	}
	return c.Environment(ledger.RunName(run))
}

func (c Config) privateHosts() ([]sandbox.Host, error) {
	hosts := make([]sandbox.Host, len(c.SandboxPrivateHosts))
	for i, text := range c.SandboxPrivateHosts {
		var err error
		if hosts[i], err = sandbox.ParseHost(text); err != nil {
			return nil, fmt.Errorf("sandbox_private_hosts[%d]: %w", i, err)
		}
	}
	return hosts, nil
}

// Server is a tool host. Many goroutines may use it at the same time.
type Server struct {
	harnessv1.UnimplementedToolHostServiceServer

	config   Config
	log      *slog.Logger
	tools    *tool.Registry[tools.Run]
	ledger   *ledger.Entries
	former   former
	calls    *calls.Calls
	commands *command.Commands
	guard    *guard.Guard
	places   *places.Places
	files    *files.Files
	nested   files.ShownInstructions

	git         *git.Git
	backgrounds *background.Commands
	worktrees   *worktree.Worktrees
	servers     *mcp.Servers

	// running counts the goroutines that belong to no room, and closed ends them.
	running sync.WaitGroup
	closed  chan struct{}
	// private are the hosts whose addresses need not be public.
	private []sandbox.Host
}

// New opens the ledger and kills commands that an earlier host on it, or on a lost ledger
// at this place, left running. It returns an error if another host uses the ledger or its
// folder.
func New(config Config) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("tool host: %w", err)
	}
	config = config.withDefaults()
	registry, err := tool.NewRegistry(config.Tools...)
	if err != nil {
		return nil, fmt.Errorf("tool host: %w", err)
	}
	l, err := ledger.Open(config.Dir, config.Sync, config.KeepResults, config.Logger)
	if err != nil {
		return nil, fmt.Errorf("tool host: %w", err)
	}
	data, err := resolve(config.Data)
	if err != nil {
		return nil, fmt.Errorf("tool host: %w", errors.Join(err, l.Close()))
	}
	guarded := places.New(trust.Open(config.Dir), config.Logger)
	workspaces, err := files.New(data, config.Limits, files.Records{Waits: guarded.Waits, Named: guarded.Named, ReadAs: guarded.ReadAs})
	if err != nil {
		return nil, fmt.Errorf("tool host: %w", errors.Join(err, l.Close()))
	}
	dir, err := resolve(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("tool host: %w", errors.Join(err, workspaces.Close(), l.Close()))
	}
	marks := process.NewMarks(l.ID, l.Place)
	guard := guard.New(guard.Config{Dir: config.Dir, Hidden: data, Sync: config.Sync, Logger: config.Logger})
	entries := ledger.NewEntries(l, config.Limits.CachedResultBytes, config.Logger)
	s := &Server{
		files:  workspaces,
		guard:  guard,
		places: guarded,
		config: config,
		log:    config.Logger,
		tools:  registry,
		ledger: entries,
		former: former{marks: marks, guard: guard, log: config.Logger, ledger: l.ID},
		calls:  calls.New(entries, guarded, config.Logger),
		closed: make(chan struct{}),
	}
	s.git = git.New(git.Config{Dir: dir, Data: data, Mark: func() string { return process.MarkVariable + "=" + marks.New() }})
	s.worktrees = worktree.New(worktree.Config{
		Dir: filepath.Join(dir, "worktrees"), Data: data, Secrets: config.Secrets, Git: s.git, Busy: s.calls.Busy, Sync: config.Sync, Logger: config.Logger,
	})
	s.private, _ = config.privateHosts() // was validated
	s.commands = command.New(command.Config{
		Dir: filepath.Join(config.Dir, "sandbox"), Data: data, Secrets: config.Secrets, AfterKernel: config.AfterKernel, Least: config.SandboxLeast,
		Pass: config.PassEnvironment, Withheld: config.Withheld,
		Environ: config.environ, Mark: marks.New, Objects: s.worktrees.Objects, Private: s.private, Resolve: config.resolve, Logger: config.Logger,
	})
	_ = s.former.kill() // CancelTools tries again before it responds
	s.worktrees.Sweep()
	s.backgrounds = background.New(background.Config{
		Dir: config.Dir, Entries: s.ledger, Commands: s.commands, Guard: guard, Places: guarded, Open: s.files.Open, KillFormer: s.former.kill, Logger: config.Logger,
	})
	s.servers = mcp.New(mcp.Config{
		Dir: dir, Tokens: config.Tokens, LedgerID: l.ID, Withheld: config.Withheld, Services: config.Services, Remote: config.Remote,
		Idle: config.ServerIdle, Private: s.private, Environ: config.environ, Commands: s.commands, Open: s.files.Open,
		Guard: guard, Places: guarded, ResultBytes: config.Limits.ResultBytes, Logger: config.Logger,
	})
	s.running.Go(func() { s.commands.Tidy(s.closed) })
	return s, nil
}

// resolve returns the absolute path of a folder, without links.
func resolve(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func (s *Server) LedgerID() string { return s.ledger.ID }
