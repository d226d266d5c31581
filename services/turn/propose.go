package turn

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// unproposed returns the calls that a person decides about and that may write files, as long as
// it is not known what they would change.
func (p *Progress) unproposed() []toolcall.Call {
	if p.execution.proposed != nil {
		return nil
	}
	var calls []toolcall.Call
	for _, c := range p.Prepared {
		kind := toolcall.Kind(c)
		if kind != runstate.KindApproval && kind != runstate.KindReview {
			continue
		}
		if c.GetWrites() && c.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST && c.GetSandboxLevel() == sandbox.Auto {
			calls = append(calls, toolcall.Call{ID: c.GetCallId(), Tool: c.GetTool(), Arguments: p.arguments[c.GetCallId()]})
		}
	}
	return calls
}

// proposed stores the changes that the calls would make.
func (p *Progress) proposed(a ProposeCalls, e Proposals) bool {
	if len(e.Previews) != 0 && len(e.Previews) != len(a.Calls) {
		return false
	}
	p.execution.proposed = map[string]*harnessv1.CallPreview{}
	for i, preview := range e.Previews {
		p.execution.proposed[a.Calls[i].ID] = preview
	}
	return true
}
