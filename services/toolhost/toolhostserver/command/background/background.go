// Package background runs the background commands of runs: those that outlive the call that
// started them.
//
// A background command is an entry of the ledger with its own key, and a file with its output
// next to the ledger. It is alive from its start until its end is stored. These promises hold:
//
//   - A command is known to its caller only after its mark is stored. One whose mark cannot
//     be stored is killed.
//   - At most toolhost.MaxBackground commands of a run are alive.
//   - Its end is stored after all its processes are dead. If the host dies before, its end is
//     not known, and Kill returns only when its processes are dead.
//   - The output is kept up to toolhost.BackgroundBytes, and the command never waits for it.
//   - While one of a run is alive, the commands of the run share its network.
//
// Errors are UNAVAILABLE: the ledger cannot be read or written, processes of an earlier host
// cannot be killed, or the host is closing.
package background

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// role is the name of the tool host at failpoints.
const role = workflow.ToolHost

// Causes for stopping a background command.
var (
	errCancelled = errors.New("the background command was cancelled")
	errClosing   = errors.New("the tool host is closing")
	errTimeout   = errors.New("the background command took too long")
)

// Config configures Commands. All fields are required.
type Config struct {
	// Dir is the folder of the host. The outputs are in its folder output.
	Dir string
	// Entries of the ledger.
	Entries *ledger.Entries
	// Commands run the commands.
	Commands *command.Commands
	// Guard guards the repositories of their workspaces.
	Guard *guard.Guard
	// Places compares their guarded places.
	Places *places.Places
	// Open opens a workspace.
	Open func(dir string) (*workspace.Workspace, error)
	// KillFormer returns when no process of earlier hosts is left, or an error that is UNAVAILABLE.
	KillFormer func() error
	Logger     *slog.Logger
}

// Commands are the background commands of a host. Many goroutines may use it.
type Commands struct {
	config  Config
	outputs outputs
	// running counts the goroutines of commands.
	running sync.WaitGroup

	// mu guards the fields below. It is not locked during writes or commands.
	mu sync.Mutex
	// closing: none starts.
	closing bool
	// alive has the commands that are alive, by the key of their run.
	alive map[string]backgrounds
}

// New returns Commands and removes the outputs of runs that have no background commands in the
// ledger.
func New(c Config) *Commands {
	s := &Commands{config: c, outputs: outputs(filepath.Join(c.Dir, "output")), alive: make(map[string]backgrounds)}
	if err := s.tidy(); err != nil {
		c.Logger.Warn("outputs of background commands could not be removed", "error", err)
	}
	return s
}

func (s *Commands) tidy() error {
	runs, err := s.config.Entries.BackgroundRuns()
	if err != nil {
		return err
	}
	return s.outputs.keep(runs)
}

// Close kills all commands, and none starts any more. To the next host they are UNKNOWN. Wait
// waits for their end.
func (s *Commands) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for _, alive := range s.alive {
		for _, b := range alive {
			b.stop(errClosing)
		}
	}
}

// Wait returns when no goroutine of a command is running. No command starts meanwhile.
func (s *Commands) Wait() { s.running.Wait() }

// Line is the command line of a run.
type Line struct{ Run, Text string }

// Lines returns the command lines of all commands that are alive.
func (s *Commands) Lines() []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []Line
	for run, alive := range s.alive {
		for _, b := range alive {
			lines = append(lines, Line{Run: run, Text: b.line})
		}
	}
	return lines
}

// Call is the call that starts a background command.
type Call struct {
	// Key is that of the call, and Run that of its run in the ledger.
	Key, Run string
	// ID is the id of the call.
	ID string
	// Workspace is the folder that the command runs in, confined as Confinement demands.
	Workspace   string
	Confinement *harnessv1.Confinement
}

// Launch is a background command that has begun.
type Launch struct {
	// Command describes it; nil if it was not started.
	Command *harnessv1.BackgroundCommand
	// Refused is why none is started; empty for another reason.
	Refused string
	// Interrupted reports that the call was stopped before it had begun.
	Interrupted bool
	// Exit is why it has not begun; its level is that at which it runs.
	Exit command.Exit
}

// Query is which output of a background command to read.
type Query struct {
	ID string
	// Offset is the first byte, Limit the maximum number of bytes.
	Offset, Limit int64
	// Wait is how long to wait for output if there is none.
	Wait time.Duration
}

// Output is a part of the output of a background command.
type Output struct {
	// Unknown reports that there is no such command; Known has those that there are.
	Unknown bool
	Known   []string
	Text    string
	// Next is the offset after Text. Left bytes follow it, and Dropped bytes were not kept.
	Next, Left, Dropped int64
	// End is how the command ended; empty while it runs.
	End string
}

// state returns how a background command of a run is, given its description. The
// caller has locked mu.
func (s *Commands) state(run string, c *harnessv1.BackgroundCommand) (*harnessv1.BackgroundState, toolhost.State, error) {
	state := &harnessv1.BackgroundState{Id: c.GetId(), CallId: c.GetCallId()}
	for _, b := range s.alive[run] {
		if b.GetCallId() == c.GetCallId() {
			state.Running = true
			return state, toolhost.Running, nil
		}
	}
	known, err := s.entry(ledger.BackgroundKey(ledger.CallKey(run, c.GetCallId())))
	if err != nil {
		return nil, 0, err
	}
	if done, ok := known.Response.(*harnessv1.BackgroundState); ok {
		return done, known.State, nil
	}
	state.Outcome, state.End = toolhost.BackgroundOutcome(known.State, known.Fate), toolhost.BackgroundLost
	if state.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		state.End = toolhost.BackgroundKilled
	}
	return state, known.State, nil
}

// entry returns the entry of a command that is not alive. The caller has locked mu.
func (s *Commands) entry(key string) (ledger.Entry, error) {
	if s.closing {
		return ledger.Entry{}, toolhost.Unavailable(toolhost.Closing, nil)
	}
	if f, pending := s.config.Entries.Pending(key); pending {
		return ledger.Entry{State: toolhost.Cancelled, Fate: f}, nil
	}
	return s.config.Entries.ReadEnd(key)
}

// States returns how background commands of a run are.
func (s *Commands) States(run string, commands []*harnessv1.BackgroundCommand) ([]*harnessv1.BackgroundState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var states []*harnessv1.BackgroundState
	for _, c := range commands {
		state, _, err := s.state(run, c)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// find returns a background command of a run by its id, and the running one if it
// runs. known has all ids if there is none.
func (s *Commands) find(run, id string) (found *harnessv1.BackgroundCommand, running *background, known []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.config.Entries.Backgrounds(run)
	if err != nil {
		return nil, nil, nil, ledger.Unreadable(err)
	}
	for _, c := range all {
		if c.GetId() == id {
			return c, s.alive[run][id], nil, nil
		}
		known = append(known, c.GetId())
	}
	return nil, nil, known, nil
}
