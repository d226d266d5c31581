//go:build !linux

package process

import (
	"context"
	"os/exec"
	"sync"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// KillFormer returns 0: the commands of earlier hosts cannot be found on this system.
func KillFormer(func(mark string) bool) int { return 0 }

// Run runs a command in its own process group. It is weaker than on Linux: a process
// that leaves the group outlives the command, and all processes outlive a host that is
// killed.
func Run(ctx context.Context, c Command) (Exit, error) {
	var pipes pipes
	defer pipes.close()
	streams := c.open(&pipes)
	if pipes.err != nil {
		return Exit{Error: disk.Reason(pipes.err)}, nil // nothing was started
	}
	cmd := exec.Command("/bin/sh", "-c", c.Line)
	cmd.Env = append(c.Environ, MarkVariable+"="+c.Mark)
	cmd.Dir = c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.stdin(), streams.outputEnd, streams.errorsEnd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return Exit{Error: disk.Reason(err)}, nil
	}
	if c.Begun != nil {
		c.Begun(Begun{Begun: true})
	}
	var copying sync.WaitGroup
	streams.copy(&copying)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	stopped := false
	select {
	case <-ended:
	case <-ctx.Done():
		stopped = true
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	streams.drain()
	copying.Wait()
	exit := Exit{Code: cmd.ProcessState.ExitCode(), Stopped: stopped}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = int(status.Signal())
		exit.Code = 128 + exit.Signal
	}
	return exit, nil
}

// LandlockABI returns 0: this system has no Landlock.
func LandlockABI() int { return 0 }
