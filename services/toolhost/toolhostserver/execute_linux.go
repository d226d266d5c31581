package toolhostserver

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
)

// execute runs a command under a supervisor and returns when all that it
// started is dead. When ctx ends, it is killed. An error means that the
// supervisor failed; what could be found of the command is dead then too.
func execute(ctx context.Context, o order) (ending, error) {
	var pipes pipes
	defer pipes.close()
	lifelineEnd, lifeline := pipes.open()
	report, reportEnd := pipes.open()
	streams := o.open(&pipes)
	if pipes.err != nil {
		return ending{}, pipes.err
	}
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{supervisorName, o.command},
		Env:         append(o.environ, markVariable+"="+o.mark),
		Dir:         o.dir,
		Stdin:       streams.stdin(),
		Stdout:      streams.outputEnd,
		Stderr:      streams.errorsEnd,
		ExtraFiles:  []*os.File{lifelineEnd, reportEnd},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return ending{Error: plain(err)}, nil
	}
	// Held by the supervisor alone from here on, so that its end can be seen.
	for _, end := range []*os.File{lifelineEnd, reportEnd} {
		_ = end.Close()
	}
	var readers sync.WaitGroup
	streams.copy(&readers)
	var told []byte
	reported := make(chan struct{})
	readers.Go(func() {
		defer close(reported)
		told, _ = io.ReadAll(io.LimitReader(report, 1<<20))
	})

	select {
	case <-reported:
	case <-ctx.Done():
		_ = lifeline.Close()
		select {
		case <-reported:
		case <-time.After(killGrace):
		}
	}
	// It has reported and has nothing more to do, or it does not answer.
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	<-reported // the kernel has closed its end

	var end ending
	err := json.Unmarshal(told, &end)
	if err != nil {
		err = fmt.Errorf("the supervisor was killed before it could report: %w", err)
		if left := sweep(func(mark string) bool { return mark == o.mark }, killGrace); left > 0 {
			err = errors.Join(err, fmt.Errorf("%d processes could not be killed", left))
		}
	}
	streams.drain()
	readers.Wait()
	return end, err
}
