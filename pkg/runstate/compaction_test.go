package runstate_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func TestCompacts(t *testing.T) {
	config := runstate.Resolve(nil, 0)
	off := proto.CloneOf(config)
	off.Context.Compaction = proto.Bool(false)
	refused := &harnessv1.TokenBudget{Refusals: 1}
	for name, c := range map[string]struct {
		s         *harnessv1.Snapshot
		want, may bool
	}{
		"by default":            {&harnessv1.Snapshot{Config: config, Workflow: workflow.Default()}, true, true},
		"in a cycle by default": {&harnessv1.Snapshot{Config: config}, true, true},
		"switched off":          {&harnessv1.Snapshot{Config: off, Workflow: workflow.Default()}, false, false},
		"without its executor":  {&harnessv1.Snapshot{Config: config, Workflow: []string{workflow.Repair, workflow.Turn, workflow.StopDecision}}, false, false},
		"in an older record":    {&harnessv1.Snapshot{Config: &harnessv1.LoopConfig{}}, false, false},
		"after a refusal":       {&harnessv1.Snapshot{Config: config, TokenBudget: refused}, true, false},
	} {
		if got, may := runstate.Compacts(c.s), runstate.MayCompact(c.s); got != c.want || may != c.may {
			t.Errorf("%s: got %v and %v, want %v and %v", name, got, may, c.want, c.may)
		}
	}
}
