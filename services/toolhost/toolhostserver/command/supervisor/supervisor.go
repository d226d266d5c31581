// Package supervisor is the process that runs one command of a tool host: it confines the
// command, adopts every orphan below it, kills all of it when the shell has ended, when
// its lifeline ends and when the host dies, and reports how the command ended.
//
// A supervisor is the program of the host started again with Name as argv[0], in its own
// session and without the host's credentials. The package's init does the work and never
// returns in such a process. It imports only the standard library and packages below
// golang.org/x: Go initializes packages by import path once their dependencies are ready,
// so a supervisor runs before the others are initialized. That is most of what the start
// of the whole program costs.
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
// or dies, the one for the report, and the one with the plan.
const (
	lifelineFD = 3
	reportFD   = 4
	planFD     = 5
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
	// Stopped reports that the command was killed before the shell ended, because the
	// context ended or the host died.
	Stopped bool `json:"stopped,omitempty"`
}

// Send writes a report.
func Send(w io.Writer, exit Exit) error { return json.NewEncoder(w).Encode(exit) }
