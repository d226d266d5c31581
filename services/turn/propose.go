package turn

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// ProposeCalls asks a tool host what calls that wait for a person would change. Leads to
// Proposals, also if no host answers.
type ProposeCalls struct {
	// Calls have their tools and their arguments.
	Calls []Call
}

func (ProposeCalls) action() {}

// Proposals are the changes that the calls of ProposeCalls would make, in their order; empty if no host
// has answered.
type Proposals struct{ Previews []*harnessv1.CallPreview }

func (Proposals) event() {}

// unproposed returns the calls that a person decides about and that may write files, as long as
// it is not known what they would change.
func (p *Progress) unproposed() []Call {
	if p.execution.proposed != nil {
		return nil
	}
	var calls []Call
	for _, c := range p.Prepared {
		kind := kindOf(c)
		if kind != runstate.KindApproval && kind != runstate.KindReview {
			continue
		}
		if c.GetWrites() && c.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST && c.GetSandboxLevel() == sandbox.Auto {
			calls = append(calls, Call{ID: c.GetCallId(), Tool: c.GetTool(), Arguments: p.arguments[c.GetCallId()]})
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

// shown returns of a preview what a tool host compares when the call is to run.
func shown(p *harnessv1.CallPreview) []*harnessv1.FilePreview {
	var files []*harnessv1.FilePreview
	for _, f := range p.GetFiles() {
		files = append(files, &harnessv1.FilePreview{Path: f.GetPath(), Before: f.GetBefore(), Hunks: f.GetHunks()})
	}
	return files
}
