package calls

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// Run runs the job, unless it ran before, and waits for its end. The end of ctx ends
// only the waiting.
func (s *Calls) Run(ctx context.Context, j *Job) (ledger.Response, error) {
	for {
		late, err := s.compare(j)
		if err != nil {
			return nil, err
		}
		if late.running == nil || !j.Compared {
			return s.runAfter(ctx, j, late)
		}
		select {
		case <-late.running.done: // its result is to be known
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// runAfter is Run, after the comparison with the log of the run.
func (s *Calls) runAfter(ctx context.Context, j *Job, late comparison) (ledger.Response, error) {
	c, resp, err := s.admit(ctx, j, late)
	if c == nil {
		return late.add(resp), err
	}
	select {
	case <-c.done:
		return late.add(c.resp), c.err
	case <-ctx.Done():
		return nil, ctx.Err() // the call continues
	}
}

// admit returns the running call to wait for, or the response if there is no need to wait.
func (s *Calls) admit(ctx context.Context, j *Job, late comparison) (*call, ledger.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := s.statusToStart(j.Key)
	if err != nil {
		return nil, nil, err
	}
	facts := j.Facts
	facts.Other, facts.LogLost = late.other || known.isOther(j), len(late.calls) > 0
	switch toolhost.Admit(known.State, facts) {
	case toolhost.Join:
		return known.call, nil, nil
	case toolhost.Replay:
		return nil, known.Response, nil
	case toolhost.ReturnCancelled:
		return nil, numbered(noResult(j.Key, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, 0), late.sequence), nil
	case toolhost.Refuse:
		return nil, late.refusal(), nil
	case toolhost.Start:
		if s.draining {
			return nil, nil, toolhost.NotStarted(toolhost.Closing, nil)
		}
		if resp := j.Reject(); resp != nil {
			return nil, resp, nil
		}
		return s.start(ctx, j), nil, nil
	case toolhost.ReturnUnknown:
	}
	return nil, numbered(noResult(j.Key, harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, 0), late.sequence), nil
}

// start runs the job in a goroutine. The caller has locked mu.
func (s *Calls) start(ctx context.Context, j *Job) *call {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call{Job: j, stop: stop, done: make(chan struct{})}
	s.calls[j.Key] = c
	s.running.Go(func() {
		defer stop(nil)
		s.run(ctx, c)
	})
	return c
}

// run stores the mark of a call, runs it, stores its end and then closes done.
func (s *Calls) run(ctx context.Context, c *call) {
	defer func() {
		s.mu.Lock()
		delete(s.calls, c.Key)
		s.mu.Unlock()
		close(c.done)
	}()
	c.Prepare(ctx, c.Workspace)
	watch, err := s.watch(c)
	if err != nil {
		c.err = toolhost.NotStarted("the tool host cannot store what git runs programs by; nothing was run", err)
		return
	}
	watch.Of(c.Run)
	changes := s.places.Start(watch, c.Run)
	if !c.Facts.Idempotent {
		if err := s.mark(c); err != nil {
			s.log.Error("call not run: its mark could not be stored", "error", err,
				"namespace", c.Namespace, "run", c.RunID, "call", c.ID)
			c.err = toolhost.NotStarted("the ledger cannot be written; nothing was run", err)
			_ = watch.End()
			_ = changes.End(watch, false, nil)
			return
		}
		failpoint.Hit(role, "marked")
	}
	begin := time.Now()
	e := Effect{Interrupted: true}
	if ctx.Err() == nil {
		if c.CommandLine != "" {
			watch.StopBy(func() { c.stop(guard.ErrStopped) })
		}
		e = c.Execute(ctx, watch)
		failpoint.Hit(role, "performed")
	}
	addNote(e.Response, watch.End())
	line := changes.End(watch, c.Restore, e.Changed).Text()
	if c.Pending != nil {
		note, changed := c.Pending()
		addNote(e.Response, note)
		line = strings.TrimSpace(line + " " + changed)
	}
	addPlaces(e.Response, line)
	s.end(c, e, context.Cause(ctx), time.Since(begin))
}

// mark stores the mark of a call, with its number if it has one.
func (s *Calls) mark(c *call) error {
	if !c.Numbered {
		return s.entries.StoreRunning(c.Key)
	}
	return s.entries.StoreNumbered(c.Key, c.Run, c.Call, c.Known)
}

// end decides and stores how a call ended.
func (s *Calls) end(c *call, e Effect, cause error, duration time.Duration) {
	if e.Interrupted {
		switch {
		case errors.Is(cause, errClosing):
			// The mark remains, so the next host returns UNKNOWN.
			c.err = toolhost.Unavailable("the tool host closed while the call ran; send the request again", cause)
			return
		case errors.Is(cause, errCancelled):
			c.resp = numbered(noResult(c.Key, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, duration), c.Call.GetSequence())
			if r, ok := e.Response.(*harnessv1.ExecuteToolResponse); ok {
				c.killed = r.GetResult()
			}
			s.entries.SetPending(c.Key, toolhost.Killed)
			_ = s.entries.StoreTombstone(c.Key, toolhost.Killed) // CancelTools tries again
			return
		}
	}
	c.resp = numbered(e.Response, c.Call.GetSequence())
	if c.Facts.Idempotent {
		s.entries.KeepResult(c.Key, c.resp, c.Call)
		if err := s.entries.StoreChanges(c.Run, e.Changed); err != nil {
			s.log.Error("changes of a call could not be stored", "error", err, "namespace", c.Namespace, "run", c.RunID, "call", c.ID)
		}
	} else if err := s.entries.StoreResult(c.Key, c.resp, c.Run, e.Changed); err != nil {
		// This process still returns the result. A later one finds the mark without
		// a result and returns UNKNOWN, so the call never runs again.
		s.log.Error("result of a call could not be stored", "error", err, "outcome", c.resp.GetOutcome())
		s.entries.KeepResult(c.Key, c.resp, c.Call)
		return
	}
	failpoint.Hit(role, "stored")
}

// watch starts to guard the repositories of a call's workspace. A workspace that cannot be
// opened has none; the call finds that out. The error means that the snapshot cannot be
// stored.
func (s *Calls) watch(c *call) (*guard.Watch, error) {
	if c.Job.Watch == nil {
		return nil, nil //nolint:nilnil // a nil Watch guards nothing
	}
	w, err := c.Job.Watch(c.Workspace)
	if errors.Is(err, guard.ErrWorkspace) {
		return nil, nil //nolint:nilnil // as above
	}
	return w, err
}

// addPlaces adds the line about guarded places to the response of a call, unless it is empty.
func addPlaces(r ledger.Response, line string) {
	addNote(r, line)
	if r, ok := r.(*harnessv1.ExecuteToolResponse); ok && line != "" {
		r.Guarded = line
	}
}

// addNote adds a note to the response of a call, unless it is empty.
func addNote(r ledger.Response, note string) {
	if note == "" {
		return
	}
	switch r := r.(type) {
	case *harnessv1.ExecuteToolResponse:
		r.Result = toolhost.AppendLine(r.GetResult(), note)
	case *harnessv1.CheckCommandResponse:
		r.ErrorOutput = toolhost.AppendLine(r.GetErrorOutput(), note)
	}
}
