package background

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
)

// Start starts a background command of a call and returns when it has begun.
func (s *Commands) Start(ctx context.Context, call Call, line string, limit time.Duration) (Launch, error) {
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	b, full, err := s.register(call, line, limit, stop)
	if err != nil || full != "" {
		stop(nil)
		return Launch{Refused: full}, err
	}
	s.running.Go(func() {
		defer stop(nil)
		s.run(running, b, call)
	})
	select {
	case <-b.begun:
	case <-b.exited:
	case <-ctx.Done():
		stop(errCancelled)
		close(b.settled)
		<-b.done
		return Launch{Interrupted: true}, nil
	}
	select {
	case <-b.begun:
	default: // it has not begun
		close(b.settled)
		return Launch{Exit: b.exit}, b.err
	}
	err = s.config.Entries.StoreBackground(b.key, b.run, b.BackgroundCommand)
	if err != nil {
		stop(errCancelled)
	}
	close(b.settled)
	if err != nil {
		<-b.done
		return Launch{}, toolhost.Unavailable("the ledger cannot be written; the background command was killed", err)
	}
	return Launch{Command: b.BackgroundCommand, Exit: command.Exit{Level: call.Confinement.GetLevel()}}, nil
}

// register adds a background command, and opens its output. full is why no more
// of them can start.
func (s *Commands) register(call Call, line string, limit time.Duration, stop context.CancelCauseFunc) (b *background, full string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, "", toolhost.Unavailable(toolhost.Closing, nil)
	}
	known, err := s.config.Entries.Backgrounds(call.Run)
	if err != nil {
		return nil, "", err
	}
	alive := s.alive[call.Run]
	if len(alive) >= toolhost.MaxBackground {
		return nil, toolhost.BackgroundFull(alive.ids()), nil
	}
	number := len(known) + 1
	for alive[commandID(number)] != nil { // not stored yet
		number++
	}
	b = &background{
		BackgroundCommand: &harnessv1.BackgroundCommand{
			Id: commandID(number), CallId: call.ID, LedgerId: s.config.Entries.ID,
			Command: toolhost.Clip(line, toolhost.BackgroundCommandBytes), StartTime: timestamppb.Now(),
		},
		key: ledger.BackgroundKey(call.Key), run: call.Run, line: line, limit: limit, stop: stop,
		begun: make(chan struct{}), exited: make(chan struct{}), settled: make(chan struct{}), done: make(chan struct{}),
	}
	if b.output, err = openOutput(s.outputs.path(call.Run, b.GetId())); err != nil {
		return nil, "", err
	}
	if alive == nil {
		alive = backgrounds{}
		s.alive[call.Run] = alive
	}
	alive[b.GetId()] = b
	return b, "", nil
}

func commandID(number int) string { return fmt.Sprintf("bg%d", number) }

// run runs a background command and stores its end.
func (s *Commands) run(ctx context.Context, b *background, call Call) {
	defer func() {
		_ = b.output.close()
		s.mu.Lock()
		delete(s.alive[b.run], b.GetId())
		if len(s.alive[b.run]) == 0 {
			delete(s.alive, b.run)
			s.config.Commands.Unshare(b.run)
		}
		s.mu.Unlock()
		close(b.done)
	}()
	b.exit, b.err = s.execute(ctx, b, call)
	close(b.exited)
	<-b.settled
	select {
	case <-b.begun:
		s.end(b, context.Cause(ctx))
	default: // it has no entry
		_ = os.Remove(b.output.path)
	}
}

// execute runs the command line in the workspace of the request, confined as the
// call is.
func (s *Commands) execute(ctx context.Context, b *background, call Call) (command.Exit, error) {
	w, err := s.config.Open(call.Workspace)
	if err != nil {
		return command.Exit{Exit: process.Exit{Error: disk.Reason(err)}}, nil
	}
	defer w.Close()
	watch, err := s.config.Guard.Start(call.Workspace, guard.ReachOf(s.config.Commands.Level(ctx, call.Confinement), call.Confinement.GetConfig()))
	if err != nil {
		return command.Exit{Exit: process.Exit{Error: disk.Reason(err)}}, nil
	}
	changes := s.config.Places.Start(watch, "")
	tell := func(note string) {
		if note != "" {
			_, _ = b.output.Write([]byte("\n" + note + "\n"))
		}
	}
	watch.Notify(tell)
	watch.StopBy(func() { b.stop(guard.ErrStopped) })
	defer func() {
		tell(watch.End())
		tell(changes.End(watch, places.Restores(call.Confinement.GetConfig()), nil).Text())
	}()
	var timer *time.Timer
	exit, err := s.config.Commands.Run(ctx, command.Request{Run: b.run, Workspace: w.Dir, Folder: w.Folder(), Confinement: call.Confinement}, process.Command{
		Line: b.line, Output: b.output, Begun: func(begun process.Begun) {
			s.config.Commands.Share(b.run, begun)
			if b.limit > 0 {
				timer = time.AfterFunc(b.limit, func() { b.stop(errTimeout) })
			}
			close(b.begun)
		},
	})
	if timer != nil {
		timer.Stop()
	}
	return exit, err
}

// end stores the end of a background command, all of whose processes are dead.
func (s *Commands) end(b *background, cause error) {
	var err error
	switch stopped := b.exit.Stopped || b.err != nil; {
	case stopped && errors.Is(cause, errClosing):
		return // the mark remains, so the next host returns UNKNOWN
	case stopped && errors.Is(cause, errCancelled):
		s.config.Entries.SetPending(b.key, toolhost.Killed)
		err = s.config.Entries.StoreTombstone(b.key, toolhost.Killed)
	default:
		state := b.ended(cause)
		s.config.Entries.KeepResult(b.key, state, nil)
		err = s.config.Entries.StoreResult(b.key, state, b.run, nil)
	}
	if err != nil { // this process still knows it
		s.config.Logger.Error("end of a background command could not be stored", "error", err, "command", b.GetId())
	}
}
