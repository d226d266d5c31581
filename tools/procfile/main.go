// Command procfile runs the processes of a Procfile, as a supervisor of a
// cluster would, on one machine and for a person who watches:
//
//	procfile [-patience 15s] [FILE]    # default: Procfile
//
// A Procfile has a line NAME: COMMAND for each process; a line that begins with
// # is a comment. Each command runs through /bin/sh in a process group of its
// own. Begin it with exec where the process is to get signals without a shell
// between.
//
// Each line that a process writes comes out whole, behind its name: NAME | LINE.
// NAME * LINE says that it was started, has ended and will be started again.
//
// A process that ends with 0 is done. One that ends otherwise is started again
// after a pause that grows from 0.2 s to 5 s; one that had lived for 10 s starts
// with the short pause again. What is left in its process group is killed.
//
// On SIGINT, SIGTERM and SIGHUP the processes are asked to stop (SIGTERM), the
// last of the file first. The first of the file is asked when all others have
// ended: it is the one that they need. What has not ended within the patience is
// killed. A second signal, 0.3 s later at the soonest, kills everything at once.
//
// A Procfile is run by one procfile at a time.
//
// It exits with 0 when every process is done or has stopped in order, and with 1
// when one had to be killed. Nothing is left running: not in the process groups
// and, on Linux, nothing that has left them either. If procfile itself is killed,
// Linux kills the processes that it started.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	os.Exit(start(os.Args[1:], subscribe()))
}

// subscribe is where the signals from outside come in.
func subscribe() <-chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	return signals
}

// start runs the file that is named and returns the exit code.
func start(args []string, signals <-chan os.Signal) int {
	flags := flag.NewFlagSet("procfile", flag.ContinueOnError)
	patience := flags.Duration("patience", 15*time.Second, "how long processes may take to stop before they are killed")
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil || flags.NArg() > 1 || *patience < 0 {
		fmt.Fprintln(os.Stderr, "usage: procfile [-patience D] [FILE]")
		return 1
	}
	file := cmp.Or(flags.Arg(0), "Procfile")
	in, err := os.Open(file)
	if err == nil {
		defer func() { _ = in.Close() }() // and the lock with it
		var entries []entry
		if entries, err = read(in); err == nil {
			return run(entries, newOutput(entries), *patience, signals)
		}
	}
	fmt.Fprintln(os.Stderr, "procfile:", err)
	return 1
}

// read locks a Procfile and reads it: two servers on one set of files would
// destroy them.
func read(f *os.File) ([]entry, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s is being run already", f.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return parse(f.Name(), f)
}

func newOutput(entries []entry) *output {
	o := &output{w: os.Stdout, colours: os.Getenv("NO_COLOR") == "" && terminal(os.Stdout)}
	for _, e := range entries {
		o.width = max(o.width, len(e.name))
	}
	return o
}

// terminal says that a file is one, near enough: a character device that is not
// the null device.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && !os.SameFile(info, null)
}
