// Package job has what the test of the sandbox and its host say to each other.
package job

import "time"

// Job asks the host to try ways.
type Job struct {
	// Level is off, kernel or full.
	Level string
	// ABI is the version of Landlock that is used, at most the kernel's.
	ABI int
	// Service has the command run by a tool host, with its own plan. Otherwise the host
	// makes the plan, and edits it as follows.
	Service bool
	// LeaveOut are the guards that the supervisor leaves out. Only a host that was built with
	// the tag guards can.
	LeaveOut []string
	// Drop are arguments of bubblewrap to remove, Insert those to add at the end, as words.
	// $HOME is the home of the user, $DATA the folder of the harness, $OWN that of the run.
	Drop, Insert []string
	// Read, Write and Device are added to those of the plan.
	Read, Write, Device []string
	// Unbounded leaves out the limits of all processes together.
	Unbounded bool
	// Inherit adds the environment of the host.
	Inherit bool
	// WriteAbove has the configuration make the folder writable that contains the folder of
	// the harness.
	WriteAbove bool
	// Quick leaves out the ways that take seconds, because they use too much of something.
	Quick bool
	// Line is a command line to run instead of trying ways; empty: none.
	Line string
	// Timeout ends the command line, 0: nothing does. Processes is its bound, 0: the default.
	Timeout   time.Duration
	Processes uint32
	// Ways are the names of those to try; empty: all.
	Ways []string
}

// Outcome is that of a way.
type Outcome struct {
	Open bool
	// Error is what the way got, if it is closed.
	Error string `json:",omitempty"`
	// NotTried is why it could not be tried.
	NotTried string `json:",omitempty"`
}

// Result of a job.
type Result struct {
	Ways map[string]Outcome
	// Output is that of the command line of the job, Code its exit code.
	Output string
	Code   int
	// Ended has why the command line was killed; empty: it was not.
	Ended string
	// Error is why the job failed.
	Error string
}
