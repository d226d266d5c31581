package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// replaceOlder has a successor of this build take over from a background process of a lower
// APILevel, and returns when it has. Any other process is left alone.
func replaceOlder(ctx context.Context, dir string, program Program) error {
	for {
		h := holding(dir)
		if h.API == 0 || h.API >= node.APILevel || !h.Background {
			return nil
		}
		program.Replace = h.PID
		if err := Spawn(ctx, program); err != nil && !errors.Is(err, ErrHeld) {
			return err
		}
	}
}

// Successor is how a process takes over from another one.
type Successor struct {
	// Dir is the data directory.
	Dir string
	// Build is the version of this program.
	Build string
	// Replace is the process that it replaces. It is left alone if another one has replaced it.
	Replace int
	// Now does not wait for commands: they have DrainTime.
	Now bool
	// Waits gets what it waits for, first and about each second. An error means that the client
	// has left: before the process agrees to end, nothing is taken over.
	Waits func(string) error
}

// Times of a hand-over.
const (
	// waitsEvery is how often Successor.Waits is called.
	waitsEvery = time.Second
	// replaceTime bounds the wait for the end of a process that agreed to end.
	replaceTime = node.HandOverTime + stopTime + 5*time.Second
)

// TakeOver waits until no command runs, has the process end, and returns what it hands over:
// the runs that were at work and the environments of all runs. No other client starts a
// process until release is called. The error is ErrHeld if another process replaces it.
func (s Successor) TakeOver(ctx context.Context) (handed *harnessv1.StopProcessResponse, release func(), err error) {
	for {
		conn, held, err := node.Attach(ctx, s.Dir)
		if err != nil {
			return nil, nil, err
		}
		if !held { // it ended: another successor may have reserved the directory
			release, err := reserve(ctx, s.Dir)
			if err == nil && node.Held(s.Dir) {
				release()
				continue
			}
			return &harnessv1.StopProcessResponse{}, release, err
		}
		h := node.HolderOf(s.Dir)
		if h.PID != s.Replace {
			return nil, nil, errors.Join(ErrHeld, conn.Close())
		}
		handed, release, err = s.takeOver(ctx, h, harnessv1.NewLocalServiceClient(conn))
		_ = conn.Close()
		if status.Code(err) != codes.Unavailable {
			return handed, release, err
		}
		if err := s.Waits(fmt.Sprintf("waiting for the end of the background process %d", h.PID)); err != nil {
			return nil, nil, err
		}
		select { // it ends
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(5 * pausePoll):
		}
	}
}

// takeOver takes over from the process at a connection.
func (s Successor) takeOver(ctx context.Context, h node.Holder, local harnessv1.LocalServiceClient) (handed *harnessv1.StopProcessResponse, release func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of the stream: without a hand-over the process continues
	if !s.Now {
		if err := s.awaitReady(ctx, h, local); err != nil {
			return nil, nil, err
		}
	}
	if release, err = reserve(ctx, s.Dir); err != nil {
		return nil, nil, err
	}
	if handed, err = local.StopProcess(ctx, &harnessv1.StopProcessRequest{Successor: true}); err != nil {
		release()
		return nil, nil, err
	}
	text := fmt.Sprintf("waiting for what the background process %d (%s) still does: model calls and file tools, at most %s", h.PID, h.Build, node.HandOverTime)
	if s.Now {
		text = fmt.Sprintf("waiting for what the background process %d (%s) still does, at most %s", h.PID, h.Build, DrainTime)
	}
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), replaceTime)
	defer stop()
	for told := time.Now(); node.Held(s.Dir); {
		if time.Since(told) > waitsEvery {
			_ = s.Waits(text) // the hand-over has begun, whether or not the client has left
			told = time.Now()
		}
		select {
		case <-ending.Done():
			release()
			return nil, nil, fmt.Errorf("the background process %d has not ended within %s; its log is %s", h.PID, replaceTime, LogFile(s.Dir))
		case <-time.After(pausePoll):
		}
	}
	return handed, release, nil
}

// awaitReady returns when no command runs at a process, which then starts none until ctx ends.
func (s Successor) awaitReady(ctx context.Context, h node.Holder, local harnessv1.LocalServiceClient) error {
	stream, err := local.HandOver(ctx, &harnessv1.HandOverRequest{Build: s.Build})
	if err != nil {
		return err
	}
	type message struct {
		response *harnessv1.HandOverResponse
		err      error
	}
	responses := make(chan message, 1)
	go func() {
		for {
			r, err := stream.Recv()
			select {
			case responses <- message{r, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	text := ""
	tick := time.NewTicker(waitsEvery)
	defer tick.Stop()
	for {
		select {
		case r := <-responses:
			switch {
			case status.Code(r.err) == codes.Unimplemented:
				return fmt.Errorf("the background process %d (%s) cannot hand over to this program (%s): harness daemon restart --now replaces it, and its commands have %s to end",
					h.PID, h.Build, s.Build, DrainTime)
			case r.err != nil:
				return r.err
			case r.response.GetReady():
				return nil
			}
			text = waitText(h, r.response.GetCommands())
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := s.Waits(text); err != nil {
			return fmt.Errorf("the client has left: %w", err)
		}
	}
}

// shownCommands bounds the commands in the text of a wait.
const shownCommands = 3

// waitText returns what a successor waits for, in one line.
func waitText(h node.Holder, commands []*harnessv1.LocalCommand) string {
	if len(commands) == 0 {
		return fmt.Sprintf("waiting for another program that replaces the background process %d (%s)", h.PID, h.Build)
	}
	var names []string
	for _, c := range commands[:min(len(commands), shownCommands)] {
		line, _, more := strings.Cut(c.GetCommand(), "\n")
		if more {
			line += " …"
		}
		names = append(names, c.GetRun().GetRunId()+" runs "+line)
	}
	if more := len(commands) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("waiting to replace the background process %d (%s): %s; harness daemon restart --now does not wait", h.PID, h.Build, strings.Join(names, ", "))
}
