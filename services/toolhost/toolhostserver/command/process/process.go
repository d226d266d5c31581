// Package process runs shell commands and kills everything that they start.
//
// On Linux a command runs under a supervisor, which is this program started again (see
// package supervisor). The supervisor confines the command, adopts every orphan of it and
// ends only when all its processes are dead; it kills them when the shell has ended, when
// the caller's context ends, and when the host dies. Every process carries a mark in its
// environment, by which a later host finds and kills what an earlier one left behind.
//
// On other systems a command gets a process group, and the group is killed.
package process

import (
	"io"
	"net"
	"os"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

const (
	// MarkVariable is the environment variable with a command's mark, which all its
	// processes inherit.
	MarkVariable = "HARNESS_CALL"
	// stopTimeout is how long a supervisor may take to kill all processes. After that
	// the host kills the supervisor and, for leftTimeout, every process with the command's
	// mark. With drainTimeout a call ends within 2 s after its timeout.
	stopTimeout = time.Second
	leftTimeout = 300 * time.Millisecond
	// killTimeout bounds both for what an earlier host left behind.
	killTimeout = 5 * time.Second
	// drainTimeout is how long output is read after all processes are dead. It covers
	// the rest in the pipe.
	drainTimeout = 500 * time.Millisecond
)

// Command is a command to run.
type Command struct {
	// Line is passed to sh -c.
	Line string
	// Dir is the folder that it runs in.
	Dir string
	// Environ is its environment, without the mark.
	Environ []string
	// Mark is the value of MarkVariable.
	Mark string
	// Plan confines it; nil means that it is not confined.
	Plan *Plan
	// Serve accepts the connections to the listener of a Plan that has one, until the
	// listener is closed: when all processes of the command are dead. Run waits for it.
	Serve func(net.Listener)
	// Join has the namespaces of the network that a Plan joins: the network and its owner.
	Join []*os.File
	// Begun is called once the shell has begun, confined as Plan says. It is not called if
	// nothing begins. Nil: Run does not wait for the beginning.
	Begun func(Begun)
	// Input is its standard input; empty means none.
	Input string
	// Stdin is its standard input if it is not nil; Run closes it.
	Stdin *os.File
	// Output receives standard output. Errors receives standard error; nil means that
	// Output receives both. Neither is used after Run returns.
	Output, Errors io.Writer
}

// Exit describes how a command ended.
type Exit = supervisor.Exit

// Begun describes a command that has begun.
type Begun = supervisor.Begun

// Plan is the confinement of a command.
type Plan = supervisor.Plan
