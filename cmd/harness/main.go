// Command harness is harnessmesh in one binary: it starts, follows and steers
// runs, and serves every role of the mesh.
package main

import (
	"os"
	"os/signal"
	"syscall"

	_ "github.com/harnessmesh/harnessmesh/cmd/harness/internal/gcrate" // before the packages that allocate
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

func main() {
	toolhostserver.Supervise() // does not return in the processes that watch over commands
	// A reader that goes away makes a write fail instead of killing the
	// process in the middle of a run. Notify, not Ignore: what is ignored is
	// handed down to the commands that tools start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	os.Exit(run(os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, signals: signals, environ: os.Environ()}, os.Getenv))
}
