package calls

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/background"
)

// Drain returns when no call is running. From its start no new call starts. When ctx ends first,
// Drain returns its cause, and no new call starts either.
func (s *Calls) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	running := slices.Collect(maps.Values(s.calls))
	s.mu.Unlock()
	for _, c := range running {
		select {
		case <-c.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Pause keeps new calls from starting, as Drain does, if no command runs, and returns nothing.
// Otherwise it returns the command lines that run, those of others included, and changes nothing.
func (s *Calls) Pause(others func() []background.Line) []background.Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := others()
	for _, c := range s.calls {
		if c.CommandLine != "" {
			lines = append(lines, background.Line{Run: c.Run, Text: c.CommandLine})
		}
	}
	if len(lines) == 0 {
		s.draining = true
	}
	return lines
}

// Continue ends a Pause.
func (s *Calls) Continue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = false
}

// Close kills the running calls, and from its start no request succeeds. It reports whether it was
// called before. To the next host, killed calls that are not idempotent are UNKNOWN. Wait waits for
// their end.
func (s *Calls) Close() (already bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	already = s.closing
	s.closing = true
	for _, c := range s.calls {
		c.stop(errClosing)
	}
	if !already {
		close(s.closed)
	}
	return already
}

// Wait returns when nothing of a call is running any more.
func (s *Calls) Wait() { s.running.Wait() }

// Busy reports whether a call runs in a workspace.
func (s *Calls) Busy(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if filepath.Clean(c.Workspace) == dir {
			return true
		}
	}
	return false
}

// Detach runs f, which is no call, to its end, whatever becomes of ctx, unless the calls are closed or
// limit is over. It returns the error of f, or that of ctx if ctx ends first.
func (s *Calls) Detach(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	s.mu.Lock()
	if s.closing || s.draining {
		s.mu.Unlock()
		return toolhost.NotStarted(toolhost.Closing, nil)
	}
	ended := make(chan error, 1)
	s.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, errTimeout)
		defer cancel()
		s.running.Go(func() {
			select {
			case <-s.closed:
				cancel()
			case <-ctx.Done():
			}
		})
		ended <- f(ctx)
	})
	s.mu.Unlock()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
