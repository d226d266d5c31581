package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// Finish returns the record of a call's end without subscribers.
func Finish(s *harnessv1.Snapshot, p *Progress, c toolcall.Call, r *harnessv1.ExecuteToolResponse) (*harnessv1.Journal, []*harnessv1.Message, []*harnessv1.Event) {
	d := p.finished(&State{Snapshot: s}, c, r, hook.Effects{})
	return d.Entry, d.Appended, d.Events
}

// Complete ends a turn. s is the step's snapshot with the journal's messages
// counted; it is changed and becomes the next step's.
func Complete(s *harnessv1.Snapshot, p *Progress, end End) (*harnessv1.Outcome, error) {
	c, err := complete(s, p, end)
	if err != nil {
		return nil, err
	}
	return c.draft.Outcome(), nil
}
