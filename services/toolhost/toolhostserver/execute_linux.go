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
	output, outputEnd := pipes.open()
	if pipes.err != nil {
		return ending{}, pipes.err
	}
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{supervisorName, o.command},
		Env:         append(o.environ, markVariable+"="+o.mark),
		Dir:         o.dir,
		Stdout:      outputEnd,
		Stderr:      outputEnd,
		ExtraFiles:  []*os.File{lifelineEnd, reportEnd},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return ending{Error: plain(err)}, nil
	}
	// Held by the supervisor alone from here on, so that its end can be seen.
	for _, end := range []*os.File{lifelineEnd, reportEnd, outputEnd} {
		_ = end.Close()
	}

	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(o.output, output) })
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
	_ = output.SetReadDeadline(time.Now().Add(drainTime))
	readers.Wait()
	return end, err
}

// pipes makes pipes and closes all their ends.
type pipes struct {
	ends []*os.File
	err  error
}

func (p *pipes) open() (read, write *os.File) {
	read, write, err := os.Pipe()
	if err != nil {
		p.err = errors.Join(p.err, err)
		return nil, nil
	}
	p.ends = append(p.ends, read, write)
	return read, write
}

func (p *pipes) close() {
	for _, end := range p.ends {
		_ = end.Close() // those that are closed already say so
	}
}
