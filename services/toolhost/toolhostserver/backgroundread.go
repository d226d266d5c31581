package toolhostserver

import (
	"context"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// sortedIDs returns the ids of background commands, in order.
func sortedIDs(alive backgrounds) []string {
	ids := make([]string, 0, len(alive))
	for id := range alive {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// findBackground returns a background command of a run by its id, and the running one if it
// runs. known has all ids if there is none.
func (s *Server) findBackground(run, id string) (found *harnessv1.BackgroundCommand, running *background, known []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.ledger.Backgrounds(run)
	if err != nil {
		return nil, nil, nil, unavailable("the ledger cannot be read", err)
	}
	for _, c := range all {
		if c.GetId() == id {
			return c, s.backgrounds[run][id], nil, nil
		}
		known = append(known, c.GetId())
	}
	return nil, nil, known, nil
}

// readBackground reads the output of a background command from an offset on. While there
// is none it waits, until the command ends or the wait is over.
func (s *Server) readBackground(ctx context.Context, run string, r tools.Read) (tools.Output, error) {
	c, b, known, err := s.findBackground(run, r.ID)
	if err != nil || c == nil {
		return tools.Output{Unknown: true, Known: known}, err
	}
	if b != nil && r.Wait > 0 {
		b.await(ctx, r.Offset, r.Wait)
	}
	// The state comes first: all output of a command that has ended is in the file.
	states, err := s.states(run, []*harnessv1.BackgroundCommand{c})
	if err != nil {
		return tools.Output{}, err
	}
	out := tools.Output{End: states[0].GetEnd()}
	if b != nil {
		_, out.Dropped, _ = b.output.state()
	}
	out.Text, out.Left, err = readOutput(s.outputPath(run, c.GetId()), r.Offset, r.Limit)
	out.Next = r.Offset + int64(len(out.Text))
	return out, err
}

// await returns when there is output after an offset, or the command has ended, or the time
// is over.
func (b *background) await(ctx context.Context, offset int64, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		size, dropped, grown := b.output.state()
		if size > offset || dropped > 0 {
			return
		}
		select {
		case <-grown:
		case <-b.done:
			return
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// stopBackground kills a background command and returns how it ended.
func (s *Server) stopBackground(ctx context.Context, run, id string) (end string, known []string, err error) {
	c, b, known, err := s.findBackground(run, id)
	if err != nil || c == nil {
		return "", known, err
	}
	if err := b.kill(ctx); err != nil {
		return "", nil, err
	}
	states, err := s.states(run, []*harnessv1.BackgroundCommand{c})
	if err != nil {
		return "", nil, err
	}
	if states[0].GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		err = s.killFormer()
	}
	return states[0].GetEnd(), nil, err
}

// kill returns when nothing of a background command is running; nil: nothing is.
func (b *background) kill(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.stop(errCancelled)
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killBackground kills all background commands of a run and returns how each ended. Then
// nothing of them is running, those of earlier hosts included.
func (s *Server) killBackground(ctx context.Context, run string, facts toolhost.Call) ([]*harnessv1.BackgroundState, error) {
	s.mu.Lock()
	alive := s.backgrounds[run]
	stopping := make([]*background, 0, len(alive))
	for _, id := range sortedIDs(alive) {
		stopping = append(stopping, alive[id])
		alive[id].stop(errCancelled)
	}
	s.mu.Unlock()
	for _, b := range stopping {
		if err := b.kill(ctx); err != nil {
			return nil, err
		}
	}
	known, err := s.ledger.Backgrounds(run)
	if err != nil {
		return nil, unavailable("the ledger cannot be read", err)
	}
	var states []*harnessv1.BackgroundState
	former := facts.ForeignLedger
	for _, c := range known {
		state, store, err := s.endBackground(run, c)
		if err != nil {
			return nil, err
		}
		former = former || store
		states = append(states, state)
	}
	if former {
		if err := s.killFormer(); err != nil {
			return nil, err
		}
	}
	if len(stopping) > 0 {
		failpoint.Hit(role, "cancelled")
	}
	return states, nil
}

// endBackground returns how a background command ended. lost reports that an earlier host
// had started it and did not store its end.
func (s *Server) endBackground(run string, c *harnessv1.BackgroundCommand) (state *harnessv1.BackgroundState, lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, stored, err := s.backgroundState(run, c)
	if err != nil {
		return nil, false, err
	}
	action := toolhost.Cancel(stored, toolhost.Unstarted, toolhost.Call{})
	return state, action == toolhost.ForbidUnknown, nil
}
