// Command harness is harnessmesh in one binary: it starts, follows and steers
// runs, and serves every role of the mesh.
package main

import (
	"os"
	"os/signal"
	"syscall"

	_ "github.com/harnessmesh/harnessmesh/cmd/harness/internal/gcrate" // before the packages that allocate
)

// version is set by the linker in releases.
var version = "dev"

func main() {
	// A closed reader makes a write fail instead of killing the process during a run.
	// Notify, not Ignore: child processes inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	program, err := os.Executable()
	if err != nil {
		program = "" // no background process then
	}
	os.Exit(run(os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, signals: signals, environ: os.Environ(), program: program, version: version}, os.Getenv))
}
