package command

import (
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

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/supervisor"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// Run runs a command under a supervisor and returns when all its processes are dead.
// When ctx ends, they are killed. An error means that the supervisor failed; all
// processes of the command that could be found are dead in that case too.
func Run(ctx context.Context, c Command) (Exit, error) {
	var pipes pipes
	defer pipes.close()
	lifelineEnd, lifeline := pipes.open()
	report, reportEnd := pipes.open()
	streams := c.open(&pipes)
	plan, err := planFile(c.Plan)
	if err = errors.Join(pipes.err, err); err != nil {
		return Exit{}, err
	}
	defer func() { _ = plan.Close() }()
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{supervisor.Name, c.Line},
		Env:         append(c.Environ, MarkVariable+"="+c.Mark),
		Dir:         c.Dir,
		Stdin:       streams.stdin(),
		Stdout:      streams.outputEnd,
		Stderr:      streams.errorsEnd,
		ExtraFiles:  []*os.File{lifelineEnd, reportEnd, plan},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return Exit{Error: workspace.Reason(err)}, nil
	}
	// Only the supervisor keeps these ends open, so that its death closes them.
	for _, end := range []*os.File{lifelineEnd, reportEnd} {
		_ = end.Close()
	}
	var readers sync.WaitGroup
	streams.copy(&readers)
	var reportText []byte
	reported := make(chan struct{})
	readers.Go(func() {
		defer close(reported)
		reportText, _ = io.ReadAll(io.LimitReader(report, 1<<20))
	})

	select {
	case <-reported:
	case <-ctx.Done():
		_ = lifeline.Close()
		select {
		case <-reported:
		case <-time.After(killTimeout):
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
		if left := killMarked(func(mark string) bool { return mark == c.Mark }, killTimeout); left > 0 {
			err = errors.Join(err, fmt.Errorf("%d processes could not be killed", left))
		}
	}
	streams.drain()
	readers.Wait()
	return exit, err
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
