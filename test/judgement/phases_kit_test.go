package judgement

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// phasesBudgets gives a run budgets.
func phasesBudgets(b *harnessv1.Budgets) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Config.Budgets = b }
}

func phasesNumber(n uint32) *uint32 { return proto.Uint32(n) }

func phasesBool(b bool) *bool { return proto.Bool(b) }
