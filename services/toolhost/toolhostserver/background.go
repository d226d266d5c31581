package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// background is a background command that is running in this process, or about to start.
type background struct {
	*harnessv1.BackgroundCommand
	// key is that of its entry in the ledger, run that of its run.
	key, run string
	line     string
	limit    time.Duration
	output   *output
	// stop kills it; the first cause counts.
	stop context.CancelCauseFunc
	// begun is closed when it has begun.
	begun chan struct{}
	// exited is closed when nothing of it is running. exit and err are set before.
	exited chan struct{}
	// settled is closed when its entry is stored, or it is known that none will be.
	settled chan struct{}
	// done is closed when it has exited and its end is stored.
	done chan struct{}
	exit tools.Exit
	err  error
}

// backgrounds are the background commands of a run that are alive, by id.
type backgrounds map[string]*background

// startBackground starts a background command of a call and returns when it has begun.
func (s *Server) startBackground(ctx context.Context, j *job, req *harnessv1.ExecuteToolRequest, line string, limit time.Duration) (tools.Launch, error) {
	b, full, err := s.newBackground(j, req, line, limit)
	if err != nil || full != "" {
		return tools.Launch{Refused: full}, err
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	b.stop = stop
	s.running.Go(func() {
		defer stop(nil)
		s.runBackground(running, b, req)
	})
	select {
	case <-b.begun:
	case <-b.exited:
	case <-ctx.Done():
		stop(errCancelled)
		close(b.settled)
		<-b.done
		return tools.Launch{Interrupted: true}, nil
	}
	select {
	case <-b.begun:
	default: // it has not begun
		close(b.settled)
		return tools.Launch{Exit: b.exit}, b.err
	}
	err = s.ledger.StoreBackground(b.key, b.run, b.BackgroundCommand)
	if err != nil {
		stop(errCancelled)
	}
	close(b.settled)
	if err != nil {
		<-b.done
		return tools.Launch{}, unavailable("the ledger cannot be written; the background command was killed", err)
	}
	return tools.Launch{Command: b.BackgroundCommand, Exit: tools.Exit{Level: req.GetConfinement().GetLevel()}}, nil
}

// newBackground registers a background command, and opens its output. full is why no more
// of them can start.
func (s *Server) newBackground(j *job, req *harnessv1.ExecuteToolRequest, line string, limit time.Duration) (b *background, full string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, "", unavailable(closingText, nil)
	}
	known, err := s.ledger.Backgrounds(j.run)
	if err != nil {
		return nil, "", err
	}
	alive := s.backgrounds[j.run]
	if len(alive) >= toolhost.MaxBackground {
		return nil, toolhost.BackgroundFull(sortedIDs(alive)), nil
	}
	number := len(known) + 1
	for alive[backgroundID(number)] != nil { // not stored yet
		number++
	}
	b = &background{
		BackgroundCommand: &harnessv1.BackgroundCommand{
			Id: backgroundID(number), CallId: req.GetCallId(), LedgerId: s.ledger.ID,
			Command: toolhost.Clip(line, toolhost.BackgroundCommandBytes), StartTime: timestamppb.Now(),
		},
		key: ledger.BackgroundKey(j.key), run: j.run, line: line, limit: limit,
		begun: make(chan struct{}), exited: make(chan struct{}), settled: make(chan struct{}), done: make(chan struct{}),
	}
	if b.output, err = openOutput(s.outputPath(j.run, b.GetId())); err != nil {
		return nil, "", err
	}
	if alive == nil {
		alive = backgrounds{}
		s.backgrounds[j.run] = alive
	}
	alive[b.GetId()] = b
	return b, "", nil
}

func backgroundID(number int) string { return fmt.Sprintf("bg%d", number) }

// runBackground runs a background command and stores its end.
func (s *Server) runBackground(ctx context.Context, b *background, req *harnessv1.ExecuteToolRequest) {
	defer func() {
		_ = b.output.close()
		s.mu.Lock()
		delete(s.backgrounds[b.run], b.GetId())
		if len(s.backgrounds[b.run]) == 0 {
			delete(s.backgrounds, b.run)
			s.closeNetwork(b.run)
		}
		s.mu.Unlock()
		close(b.done)
	}()
	b.exit, b.err = s.runInBackground(ctx, b, req)
	close(b.exited)
	<-b.settled
	select {
	case <-b.begun:
		s.backgroundEnded(b, context.Cause(ctx))
	default: // it has no entry
		_ = os.Remove(b.output.path)
	}
}

// runInBackground runs the command line in the workspace of the request, confined as the
// call is.
func (s *Server) runInBackground(ctx context.Context, b *background, req *harnessv1.ExecuteToolRequest) (tools.Exit, error) {
	w, err := s.openWorkspace(req.GetWorkspace())
	if err != nil {
		return tools.Exit{Exit: process.Exit{Error: disk.Reason(err)}}, nil
	}
	defer w.Close()
	watch, err := s.guard.Start(req.GetWorkspace())
	if err != nil {
		return tools.Exit{Exit: process.Exit{Error: disk.Reason(err)}}, nil
	}
	defer func() {
		if note := watch.End(); note != "" {
			_, _ = b.output.Write([]byte("\n" + note + "\n"))
		}
	}()
	var timer *time.Timer
	exit, err := s.runCommand(ctx, w, b.run, req.GetConfinement(), process.Command{
		Line: b.line, Output: b.output, Begun: func(begun process.Begun) {
			s.shareNetwork(b.run, begun)
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

// backgroundEnded stores the end of a background command, all of whose processes are dead.
func (s *Server) backgroundEnded(b *background, cause error) {
	var err error
	switch stopped := b.exit.Stopped || b.err != nil; {
	case stopped && errors.Is(cause, errClosing):
		return // the mark remains, so the next host returns UNKNOWN
	case stopped && errors.Is(cause, errCancelled):
		s.mu.Lock()
		s.tombstones[b.key] = toolhost.Killed
		s.mu.Unlock()
		err = s.storeTombstone(b.key, toolhost.Killed)
	default:
		state := b.ended(errors.Is(cause, errTimeout))
		s.mu.Lock()
		s.results.add(b.key, state)
		s.mu.Unlock()
		err = s.ledger.StoreResult(b.key, state, b.run, nil)
	}
	if err != nil { // this process still knows it
		s.log.Error("end of a background command could not be stored", "error", err, "command", b.GetId())
	}
}

// ended returns the state of a command that has ended by itself or at its time limit.
func (b *background) ended(late bool) *harnessv1.BackgroundState {
	exit, limit := b.exit, time.Duration(0)
	if exit.Stopped && late {
		limit = b.limit
	}
	failed := ""
	if b.err != nil {
		failed = "its supervisor failed, and everything that was found of it was killed"
	}
	return &harnessv1.BackgroundState{
		Id: b.GetId(), CallId: b.GetCallId(), Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE,
		End: toolhost.BackgroundEnd(exit.Code, exit.Signal, limit, exit.Exceeded, failed, exit.RefusedHosts), Tail: b.output.tailText(),
	}
}

// backgroundState returns how a background command of a run is, given its description. The
// caller has locked mu.
func (s *Server) backgroundState(run string, c *harnessv1.BackgroundCommand) (*harnessv1.BackgroundState, toolhost.State, error) {
	state := &harnessv1.BackgroundState{Id: c.GetId(), CallId: c.GetCallId()}
	for _, b := range s.backgrounds[run] {
		if b.GetCallId() == c.GetCallId() {
			state.Running = true
			return state, toolhost.Running, nil
		}
	}
	known, err := s.status(ledger.BackgroundKey(ledger.CallKey(run, c.GetCallId())))
	if err != nil {
		return nil, 0, err
	}
	if done, ok := known.Response.(*harnessv1.BackgroundState); ok {
		return done, known.State, nil
	}
	state.Outcome, state.End = toolhost.BackgroundOutcome(known.State, known.Fate), toolhost.BackgroundLost
	if state.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		state.End = toolhost.BackgroundKilled
	}
	return state, known.State, nil
}

// states returns how background commands of a run are.
func (s *Server) states(run string, commands []*harnessv1.BackgroundCommand) ([]*harnessv1.BackgroundState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var states []*harnessv1.BackgroundState
	for _, c := range commands {
		state, _, err := s.backgroundState(run, c)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}
