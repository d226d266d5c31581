package judgement

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// phasesBudgets gives a run budgets.
func phasesBudgets(b *harnessv1.Budgets) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Config.Budgets = b }
}

func phasesNumber(n uint32) *uint32 { return proto.Uint32(n) }

func phasesBool(b bool) *bool { return proto.Bool(b) }

// phasesClientTool gives the run a tool of the client, ask_client.
func phasesClientTool(spec *harnessv1.RunSpec) {
	spec.ClientTools = []*harnessv1.ToolSpec{{Name: "ask_client", Description: "A tool of the client.", ParametersSchema: `{"type":"object","properties":{"v":{"type":"string"}}}`}}
}

// phasesPlans are the plans that were drafted and committed, in order.
func phasesPlans(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		switch {
		case e.GetPlanDraft() != nil:
			all = append(all, "draft "+e.GetPlanDraft().GetPlan())
		case e.GetPlanCommit() != nil:
			all = append(all, "commit "+e.GetPlanCommit().GetPlan())
		}
	}
	return all
}
