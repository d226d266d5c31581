package background

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// Read reads the output of a background command from an offset on. While there
// is none it waits, until the command ends or the wait is over.
func (s *Commands) Read(ctx context.Context, run string, r Query) (Output, error) {
	c, b, known, err := s.find(run, r.ID)
	if err != nil || c == nil {
		return Output{Unknown: true, Known: known}, err
	}
	if b != nil && r.Wait > 0 {
		b.await(ctx, r.Offset, r.Wait)
	}
	// The state comes first: all output of a command that has ended is in the file.
	states, err := s.States(run, []*harnessv1.BackgroundCommand{c})
	if err != nil {
		return Output{}, err
	}
	out := Output{End: states[0].GetEnd()}
	if b != nil {
		_, out.Dropped, _ = b.output.state()
	}
	out.Text, out.Next, out.Left, err = readOutput(s.outputs.path(run, c.GetId()), r.Offset, r.Limit)
	return out, err
}

// Stop kills a background command and returns how it ended.
func (s *Commands) Stop(ctx context.Context, run, id string) (end string, known []string, err error) {
	c, b, known, err := s.find(run, id)
	if err != nil || c == nil {
		return "", known, err
	}
	if err := b.kill(ctx); err != nil {
		return "", nil, err
	}
	states, err := s.States(run, []*harnessv1.BackgroundCommand{c})
	if err != nil {
		return "", nil, err
	}
	if states[0].GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		err = s.config.KillFormer()
	}
	return states[0].GetEnd(), nil, err
}

// Kill kills all background commands of a run and returns how each ended. Then
// nothing of them is running, those of earlier hosts included.
func (s *Commands) Kill(ctx context.Context, run string, foreign bool) ([]*harnessv1.BackgroundState, error) {
	s.mu.Lock()
	alive := s.alive[run]
	stopping := make([]*background, 0, len(alive))
	for _, id := range alive.ids() {
		stopping = append(stopping, alive[id])
		alive[id].stop(errCancelled)
	}
	s.mu.Unlock()
	for _, b := range stopping {
		if err := b.kill(ctx); err != nil {
			return nil, err
		}
	}
	known, err := s.config.Entries.Backgrounds(run)
	if err != nil {
		return nil, ledger.Unreadable(err)
	}
	var states []*harnessv1.BackgroundState
	former := foreign
	for _, c := range known {
		state, store, err := s.killed(run, c)
		if err != nil {
			return nil, err
		}
		former = former || store
		states = append(states, state)
	}
	if former {
		if err := s.config.KillFormer(); err != nil {
			return nil, err
		}
	}
	if len(stopping) > 0 {
		failpoint.Hit(role, "cancelled")
	}
	return states, nil
}

// killed returns how a background command ended. lost reports that an earlier host
// had started it and did not store its end.
func (s *Commands) killed(run string, c *harnessv1.BackgroundCommand) (state *harnessv1.BackgroundState, lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, stored, err := s.state(run, c)
	if err != nil {
		return nil, false, err
	}
	action := toolhost.Cancel(stored, toolhost.Unstarted, toolhost.Call{})
	return state, action == toolhost.ForbidUnknown, nil
}
