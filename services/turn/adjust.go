package turn

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// adjustments returns the adjustments of the requests to a model, those of this step
// included. Opaque parts that another model of the provider has refused are among them.
func (p *Progress) adjustments(s *State, ref string) []*harnessv1.ModelAdjustment {
	var all, own []*harnessv1.ModelAdjustment
	all = append(all, s.Snapshot.GetModelAdjustments()...)
	for _, f := range p.Failures {
		if f.GetAdjustment() != nil {
			all = runstate.Adjust(all, f.GetAdjustment())
		}
	}
	for _, a := range all {
		refused := a.GetAdjustment() == harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
		if a.GetModel() == ref || refused && providerOf(a.GetModel()) == providerOf(ref) {
			own = append(own, a)
		}
	}
	return own
}

// RefusedTools returns the tools that the model of the run has refused before this step, of those that
// it is shown. Its requests are sent without them.
func (s *State) RefusedTools() []*harnessv1.ToolSpec { return (&Progress{}).refusedTools(s) }

// refusedTools is RefusedTools with those of this step.
func (p *Progress) refusedTools(s *State) (refused []*harnessv1.ToolSpec) {
	for _, a := range p.adjustments(s, s.Snapshot.GetModel()) {
		if spec := s.Offer.Lookup(a.GetTool()); spec != nil && a.GetAdjustment() == harnessv1.Adjustment_ADJUSTMENT_NO_TOOL {
			refused = append(refused, spec)
		}
	}
	return refused
}

// providerOf returns the prefix of a model that names its provider.
func providerOf(ref string) string {
	provider, _, _ := strings.Cut(ref, ":")
	return provider
}

// adjust returns the adjustment that a failed try asks for; nil if it asks for none, or
// for one that the request had.
func (p *Progress) adjust(s *State, ref string, failure *model.Error) *harnessv1.ModelAdjustment {
	if failure.Adjustment == harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED {
		return nil
	}
	adjustment := &harnessv1.ModelAdjustment{Model: ref, Adjustment: failure.Adjustment, Member: failure.Member}
	if failure.Adjustment == harnessv1.Adjustment_ADJUSTMENT_NO_TOOL {
		if adjustment.Tool = failure.Tool; !p.mayLeaveOut(s, adjustment.GetTool()) {
			return nil
		}
	}
	if failure.Adjustment == harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE {
		for _, m := range p.execution.conversation.Messages {
			adjustment.ThroughMessage = max(adjustment.ThroughMessage, m.GetId())
		}
	}
	for _, a := range p.adjustments(s, ref) {
		same := a.GetModel() == ref && a.GetAdjustment() == adjustment.GetAdjustment() && a.GetTool() == adjustment.GetTool() && a.GetMember() == adjustment.GetMember()
		if same && a.GetThroughMessage() >= adjustment.GetThroughMessage() {
			return nil
		}
	}
	return adjustment
}

// maxToolsLeftOut bounds the tools that models refuse in a run.
const maxToolsLeftOut = 16

// mayLeaveOut reports whether requests can go without a tool that a model refuses: one of a server,
// unless there are too many of them. A run is nothing without the tools of the harness.
func (p *Progress) mayLeaveOut(s *State, name string) bool {
	if s.Offer == nil || s.Offer.Servers.Lookup(name) == nil {
		return false
	}
	left := 0
	count := func(a *harnessv1.ModelAdjustment) {
		if a.GetAdjustment() == harnessv1.Adjustment_ADJUSTMENT_NO_TOOL {
			left++
		}
	}
	for _, a := range s.Snapshot.GetModelAdjustments() {
		count(a)
	}
	for _, f := range p.Failures {
		count(f.GetAdjustment())
	}
	return left < maxToolsLeftOut
}
