package toolhostserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// shownCommand bounds the text of a command that a hand-over waits for, in bytes.
const shownCommand = 200

// Pause keeps new calls from starting, as Drain does, if no command runs, and returns nil.
// Otherwise it returns the commands that run, those in the background included, sorted by
// run and text, and changes nothing. Calls that are no commands continue.
func (s *Server) Pause() []*harnessv1.LocalCommand {
	var running []*harnessv1.LocalCommand
	for _, l := range s.calls.Pause(s.backgrounds.Lines) {
		namespace, id := ledger.RunParts(l.Run)
		running = append(running, &harnessv1.LocalCommand{
			Run: &harnessv1.LocalRun{Namespace: namespace, RunId: id}, Command: toolhost.Clip(l.Text, shownCommand),
		})
	}
	slices.SortFunc(running, func(a, b *harnessv1.LocalCommand) int {
		return cmp.Or(cmp.Compare(a.GetRun().GetRunId(), b.GetRun().GetRunId()), cmp.Compare(a.GetCommand(), b.GetCommand()))
	})
	return running
}

// Continue ends a Pause.
func (s *Server) Continue() { s.calls.Continue() }

// Drain returns when no call is running. From its start no new call starts: the request
// fails with UNAVAILABLE. Requests for running or ended calls and cancel requests succeed
// as before, also after Drain has returned. When ctx ends first, Drain returns the cause
// and the host remains draining; Close kills the calls that are running.
func (s *Server) Drain(ctx context.Context) error {
	if err := s.calls.Drain(ctx); err != nil {
		return fmt.Errorf("tool host: calls are still running: %w", err)
	}
	return nil
}

// Close rejects new requests, kills the running calls with all their processes, waits for
// them and closes the ledger. When ctx ends first, the ledger remains open and the calls
// are killed when the process ends. To the next host, killed calls that are not
// idempotent are UNKNOWN.
func (s *Server) Close(ctx context.Context) error {
	already := s.calls.Close()
	s.backgrounds.Close()
	if already {
		return nil
	}
	close(s.closed)
	ended := make(chan struct{})
	go func() {
		s.servers.Close()
		s.calls.Wait()
		s.running.Wait()
		s.backgrounds.Wait()
		s.guard.Close()
		close(ended)
	}()
	select {
	case <-ended:
		return errors.Join(s.ledger.Close(), s.files.Close())
	case <-ctx.Done():
		return fmt.Errorf("tool host: calls are still being killed: %w", context.Cause(ctx))
	}
}
