// Package console is one run of the program: its input and output, environment and signals,
// the flags that were given, its log, and what its terminal can show. Verbs read and write
// nothing else of the process. Errors are texts of one line that begin with the flag or argument
// they are about.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
)

// Process is the input and output of a process.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	// Signals are the requests to stop.
	Signals <-chan os.Signal
	// Environ are all variables of the environment, as NAME=VALUE.
	Environ []string
	// Program is the path of this program, which runs again as background process; empty: it
	// does not.
	Program string
	// Version is that of this program.
	Version string
}

// Console is one run of the program.
type Console struct {
	Process
	Env func(string) string
	Log *slog.Logger
	// Level is that of log.
	Level slog.Level
	// Logs is where log goes.
	Logs *Outlet
	// Given are the flags of the command line, without those of the environment.
	Given map[string]bool
	// Inherited are the flags of the environment.
	Inherited map[string]bool
	// Catalogue is the file that extends the model catalogue; empty: none.
	Catalogue string
	// Server is the address of --server; empty: the gateway is another one.
	Server string
	// Parser is the definition of the command line.
	Parser *kong.Kong
}

// ErrSignal is the cause of a context that a signal cancelled.
var ErrSignal = errors.New("interrupted")

// Report writes a remark to stderr.
func (a *Console) Report(format string, args ...any) {
	fmt.Fprintln(a.Err, OneLine("harness: "+fmt.Sprintf(format, args...)))
}

func EnvName(flag string) string {
	return "HARNESS_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Conflict returns an error if two mutually exclusive flags are set.
func (a *Console) Conflict(one, other string) error {
	if a.Given[one] && a.Given[other] {
		return fmt.Errorf("--%s and --%s are mutually exclusive: use one of them", one, other)
	}
	return nil
}

// CancelOnSignal returns a context that the next signal cancels, until stop is called.
func (a *Console) CancelOnSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-a.Signals:
			cancel(ErrSignal)
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
	}
}

// Before returns the exit code and error of a command that failed before it followed a
// run.
func Before(err error) (int, error) {
	if errors.Is(err, ErrSignal) {
		return exit.Parked, errors.New("interrupted before the run had started")
	}
	return exit.Error, err
}

// WarnOpenFile warns if other users of this machine can read a secret.
func (a *Console) WarnOpenFile(flag, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		a.Report("WARNING: %s: every user of this machine can read %s: chmod 600 it", flag, path)
	}
}
