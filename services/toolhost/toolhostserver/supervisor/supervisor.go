// Package supervisor is the process that runs one command of a tool host: it confines the
// command, adopts every orphan below it, kills all of it when the shell has ended, when
// its lifeline ends and when the host dies, and reports how the command ended.
//
// A supervisor is the program of the host started again with Name as argv[0], in its own
// session and without the host's credentials. The package's init does the work and never
// returns in such a process. It imports only the standard library and packages below
// golang.org/x: Go initializes packages by import path once their dependencies are ready,
// so a supervisor runs before the others are initialized. That saves most of the cost of
// the start of the whole program.
//
// Not covered: processes that other daemons start on the command's behalf (a container
// engine, at, systemd-run), and a process whose supervisor was killed and that neither
// its environment nor its parent identifies.
package supervisor

import (
	"encoding/json"
	"io"
)

// Name is argv[0] of a supervisor; argv[1] is the command line.
const Name = "harness-command-supervisor"

// Descriptors that a supervisor inherits: the lifeline, which ends when the host closes it
// or dies, the one for the report, the one with the plan, and the socket over which the host
// gets the listener of a plan that has one.
const (
	lifelineFD = 3
	reportFD   = 4
	planFD     = 5
	listenerFD = 6
)

// Exit describes how a command ended. All its processes are dead. Supervisors send it to
// the host as JSON.
type Exit struct {
	// Code is the exit code; 128 + signal if a signal killed the shell.
	Code int `json:"code"`
	// Signal is the number of that signal, 0 for none.
	Signal int `json:"signal"`
	// Left has the names of the processes that the shell left running and that were
	// killed.
	Left []string `json:"left,omitempty"`
	// Error is why the command could not be started.
	Error string `json:"error,omitempty"`
	// Unconfined reports that nothing was started, because the confinement of the plan
	// could not be set up; Error has the reason.
	Unconfined bool `json:"unconfined,omitempty"`
	// Exceeded is the bound that the command exceeded, so that it was killed; empty if it did
	// not.
	Exceeded string `json:"exceeded,omitempty"`
	// Stopped reports that the command was killed before the shell ended, because the
	// context ended or the host died.
	Stopped bool `json:"stopped,omitempty"`
}

// Announced is argv[2] of a supervisor that reports, before its Exit, that the command has
// begun: a Begun.
const Announced = "announced"

// Begun is the report that a command has begun, confined as its plan says.
type Begun struct {
	Begun bool `json:"begun"`
	// PID is a process in the namespaces of the command, and Network the number of its
	// network namespace. Both are 0 if it has no separate one.
	PID     int    `json:"pid,omitempty"`
	Network uint64 `json:"network,omitempty"`
}

// Send writes a report.
func Send(w io.Writer, exit Exit) error { return json.NewEncoder(w).Encode(exit) }
