package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// Finish returns the record of a call's end without subscribers.
func Finish(s *harnessv1.Snapshot, p *Progress, c toolcall.Call, r *harnessv1.ExecuteToolResponse) (*harnessv1.Journal, []*harnessv1.Message, []*harnessv1.Event) {
	d := p.finished(&State{Snapshot: s}, c, r, nil, hook.Effects{})
	return d.Entry, d.Appended, d.Events
}
