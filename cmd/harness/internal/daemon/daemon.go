// Package daemon is the background process of a user: one mesh that all runs of the default
// data directory share.
//
// # Start
//
// Start runs this program again, in a separate session without a terminal, as
// `harness daemon run`. The lock of the data directory elects one of several: the others end,
// and every client joins the holder. A client waits for a line on a pipe, ready or an error.
//
// # Environment
//
// The process has no keys. With each input that drives a run, a client gives the variables of
// model providers and the environment of commands (environments). The former stay in memory;
// the latter are in a file of mode 0600 that is deleted with the run. The newest counts.
//
// # End
//
// The process ends by itself 10 minutes after its last client has left, unless a run works or
// a timer wakes one within the hour (Idle.Ends). SIGTERM and StopProcess drain it for 30 s.
// The end is noted in the data directory (EndOf), so that a client that follows a run can tell
// a stop, after which it leaves, from a crash, after which it starts the process again and
// resumes its run. With a successor it waits.
//
// # Builds
//
// The holder's file has the build and node.APILevel. Programs of one level join each other. A
// program of a higher level starts a successor, which takes over (TakeOver): it waits until no
// command runs, gets the runs at work and the environments, and starts when the process has
// ended. Everything else is refused with what to do (check).
package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
)

// Times of the process.
const (
	// DefaultLinger is how long the process stays after its last client has left.
	DefaultLinger = 10 * time.Minute
	// WakeWithin is how near a timer keeps the process.
	WakeWithin = time.Hour
	// DrainTime is how long work may continue once the process is to end.
	DrainTime = 30 * time.Second
)

// Idle is what decides whether the process ends by itself.
type Idle struct {
	// Clients are the open connections, Working the runs at work.
	Clients, Working int
	// Since is when there was a client or work last.
	Since time.Time
	// NextWake is when a timer wakes the next run; zero: never.
	NextWake time.Time
}

// Ends reports whether the process ends at now.
func (i Idle) Ends(now time.Time, linger time.Duration) bool {
	if i.Clients > 0 || i.Working > 0 || now.Sub(i.Since) < linger {
		return false
	}
	return i.NextWake.IsZero() || i.NextWake.Sub(now) > WakeWithin
}

// check returns an error if this program and the process that uses a data directory do not
// work together, with what to do.
func check(dir string, h node.Holder) error {
	who := fmt.Sprintf("process %d (%s)", h.PID, h.Command)
	switch {
	case h.PID == 0 || h.API == node.APILevel:
		return nil
	case h.API == 0:
		return fmt.Errorf("data directory %s is in use by %s of an older version: wait for its end, or stop it with kill %d, then repeat this command", dir, who, h.PID)
	case h.API < node.APILevel && !h.Background:
		return fmt.Errorf("data directory %s is in use by %s of an older version (%s): stop it where it runs, then repeat this command", dir, who, h.Build)
	case h.API < node.APILevel:
		return fmt.Errorf("the background process %d is older than this program (%s): harness daemon restart replaces it, and its runs continue", h.PID, h.Build)
	}
	return fmt.Errorf("the background process %d is newer than this program (%s): use that version, or stop it with kill %d, and its runs wait for harness resume", h.PID, h.Build, h.PID)
}

// Names inside a data directory.
const (
	logFile         = "daemon.log"
	noteFile        = "daemon.ended"
	environmentsDir = "environments"
	startLock       = "daemon.starting"
	joinedFile      = "daemon.joined"
	catalogueFile   = "daemon.catalogue"
)

// LogFile returns the path of the log.
func LogFile(dir string) string { return filepath.Join(dir, logFile) }

// FirstJoin reports whether this build joins a process of another build for the first time,
// and records it.
func FirstJoin(dir, build string, h node.Holder) bool {
	if h.Build == "" || h.Build == build {
		return false
	}
	path, line := filepath.Join(dir, joinedFile), fmt.Sprintf("%d %s\n", h.PID, build)
	if have, err := os.ReadFile(path); err == nil && strings.Contains(string(have), line) {
		return false
	}
	_ = os.WriteFile(path, []byte(line), 0o600) // it is said again otherwise
	return true
}

// CheckCatalogue returns an error if the process of a data directory does not use a catalogue
// file, with what to do.
func CheckCatalogue(dir, file string, h node.Holder) error {
	raw, _ := os.ReadFile(filepath.Join(dir, catalogueFile)) // of a process without one
	if string(raw) == file {
		return nil
	}
	return fmt.Errorf("--catalogue: the background process %d uses %s: HARNESS_CATALOGUE=%s harness daemon restart changes that, or name another directory with --data",
		h.PID, cmp.Or(string(raw), "the built-in catalogue"), file)
}

// End is how a process has ended in order.
type End string

// How a process ends in order.
const (
	// Stopped: by daemon stop or a signal. Clients leave.
	Stopped End = "stopped"
	// Replaced: a successor follows. Clients wait for it.
	Replaced End = "replaced"
)

// recordEnd records how process pid ends.
func recordEnd(dir string, pid int, end End) error {
	return os.WriteFile(filepath.Join(dir, noteFile), fmt.Appendf(nil, "%d %s\n", pid, end), 0o600)
}

// EndOf returns how process pid has ended; empty for a crash.
func EndOf(dir string, pid int) End {
	raw, err := os.ReadFile(filepath.Join(dir, noteFile))
	if err != nil {
		return ""
	}
	var of int
	var end End
	if _, err := fmt.Sscanf(string(raw), "%d %s", &of, &end); err != nil || of != pid {
		return ""
	}
	return end
}

// ErrHeld is returned by Serve if another process has the data directory.
var ErrHeld = errors.New("another process has the data directory")
