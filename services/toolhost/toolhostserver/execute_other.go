//go:build !linux

package toolhostserver

import (
	"context"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
)

// supervisable says that commands can be run.
var supervisable atomic.Bool

// Supervise returns at once: there are no supervisors on this system.
func Supervise() { supervisable.Store(true) }

// awaitFormerLife cannot find the commands of earlier hosts on this system.
func awaitFormerLife(func(mark string) bool) int { return 0 }

// execute runs a command in a process group of its own. Weaker than on Linux: a
// process that leaves the group outlives the command, and so does all of it
// when the host is killed.
func execute(ctx context.Context, o order) (ending, error) {
	var pipes pipes
	defer pipes.close()
	streams := o.open(&pipes)
	if pipes.err != nil {
		return ending{}, pipes.err
	}
	cmd := exec.Command("/bin/sh", "-c", o.command)
	cmd.Env = append(o.environ, markVariable+"="+o.mark)
	cmd.Dir = o.dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.stdin(), streams.outputEnd, streams.errorsEnd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return ending{Error: plain(err)}, nil
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
	end := ending{Code: cmd.ProcessState.ExitCode(), Stopped: stopped}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Signal = int(status.Signal())
		end.Code = 128 + end.Signal
	}
	return end, nil
}
