package process

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// Run runs a command under a supervisor and returns when all its processes are dead.
// When ctx ends, they are killed. A command that could not be started has an Exit with an
// Error. An error means that the supervisor failed; all processes of the command that could
// be found are dead in that case too.
func Run(ctx context.Context, c Command) (Exit, error) {
	var pipes pipes
	defer pipes.close()
	lifelineEnd, lifeline := pipes.open()
	report, reportEnd := pipes.open()
	streams := c.open(&pipes)
	plan, err := planFile(c.Plan)
	if err = cmp.Or(pipes.err, err); err != nil {
		return Exit{Error: disk.Reason(err)}, nil // nothing was started
	}
	defer func() { _ = plan.Close() }()
	proxy, err := c.openProxy()
	if err != nil {
		return Exit{Error: disk.Reason(err)}, nil
	}
	defer proxy.close()
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        c.arguments(),
		Env:         append(c.Environ, MarkVariable+"="+c.Mark),
		Dir:         c.Dir,
		Stdin:       streams.stdin(),
		Stdout:      streams.outputEnd,
		Stderr:      streams.errorsEnd,
		ExtraFiles:  c.extra([]*os.File{lifelineEnd, reportEnd, plan}, proxy.files()),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return Exit{Error: disk.Reason(err)}, nil
	}
	// Only the supervisor keeps these ends open, so that its death closes them.
	for _, end := range append(proxy.files(), lifelineEnd, reportEnd) {
		_ = end.Close()
	}
	proxy.start()
	var readers sync.WaitGroup
	streams.copy(&readers)
	var reportText []byte
	reported := make(chan struct{})
	readers.Go(func() {
		defer close(reported)
		reportText = c.readReport(io.LimitReader(report, 1<<20))
	})

	select {
	case <-reported:
	case <-ctx.Done():
		_ = lifeline.Close()
		select {
		case <-reported:
		case <-time.After(stopTimeout):
		}
	}
	// It has reported and has nothing more to do, or it does not respond.
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	<-reported // the kernel has closed its end

	var exit Exit
	err = json.Unmarshal(reportText, &exit)
	if err != nil {
		err = fmt.Errorf("the supervisor was killed before it could report: %w", err)
		if left := killMarked(func(mark string) bool { return mark == c.Mark }, leftTimeout); left > 0 {
			err = errors.Join(err, fmt.Errorf("%d processes could not be killed", left))
		}
	}
	streams.drain()
	readers.Wait()
	if !proxy.close() && exit.Error == "" && exit.Exceeded == "" && !exit.Stopped && err == nil {
		exit = Exit{Unconfined: true, Error: "the proxy to the hosts of the network could not be set up"}
	}
	return exit, err
}

// extra returns the files of the supervisor: those that each has, the listener of a proxy, and
// the network that the command joins. A command has one of the two at most.
func (c Command) extra(files, listener []*os.File) []*os.File {
	if len(c.Join) > 0 {
		return append(append(files, nil), c.Join...)
	}
	return append(files, listener...)
}

// arguments returns the command line of the supervisor.
func (c Command) arguments() []string {
	if c.Begun == nil {
		return []string{supervisor.Name, c.Line}
	}
	return []string{supervisor.Name, c.Line, supervisor.Announced}
}

// readReport returns the last line of what a supervisor reports. One before it is the
// beginning of the command.
func (c Command) readReport(report io.Reader) (last []byte) {
	for lines := bufio.NewReader(report); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return append(last, line...)
		}
		var b Begun
		if c.Begun != nil && json.Unmarshal(line, &b) == nil && b.Begun {
			c.Begun(b)
			continue
		}
		last = line
	}
}

// planFile returns a file in memory with a plan, empty for none.
func planFile(plan *Plan) (*os.File, error) {
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "plan")
	if plan == nil {
		return file, nil
	}
	err = json.NewEncoder(file).Encode(plan)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// LandlockABI returns the version of Landlock that the kernel has, 0 for none.
func LandlockABI() int { return supervisor.LandlockABI() }
