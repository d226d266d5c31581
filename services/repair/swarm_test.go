package repair_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// swarmSpec is a run with a swarm and five sources.
func swarmSpec(s *harnessv1.RunSpec) *harnessv1.RunSpec {
	for _, name := range []string{"east", "west", "merge"} {
		s.Agent.Agents = append(s.Agent.Agents, &harnessv1.SubAgent{Name: name, Description: "Looks.", Instructions: "Look."})
	}
	s.Agent.Swarm = &harnessv1.Swarm{Specialists: []string{"east", "west"}, Aggregator: "merge"}
	for i := range 5 {
		s.Task.Sources = append(s.Task.Sources, &harnessv1.Source{Id: fmt.Sprint("s", i)})
	}
	return s
}

// TestSwarmByTheKindOfWork: the kind is the one that is given, or that a model classified.
func TestSwarmByTheKindOfWork(t *testing.T) {
	intent := func(kind string) map[string]string {
		return map[string]string{quality.PurposeClassify: complexWork, quality.PurposeIntent: `{"kind":"` + kind + `","confidence":0.9}`}
	}
	unjudged := spec()
	unjudged.Task = &harnessv1.Task{Kind: "full_pipeline"}
	unknown := spec()
	unknown.Task = &harnessv1.Task{}
	for name, c := range map[string]struct {
		spec    *harnessv1.RunSpec
		answers map[string]string
		works   bool
	}{
		"given": {qualitySpec("synthesis"), intent("chat"), true}, "classified": {qualitySpec(""), intent("full_pipeline"), true},
		"chat": {qualitySpec(""), intent("chat"), false}, "no answer": {qualitySpec(""), nil, false},
		"given, not judged": {unjudged, nil, true}, "not judged": {unknown, nil, false},
	} {
		for _, entitled := range []bool{true, false} {
			if c.spec.GetTask() == nil {
				c.spec.Task = &harnessv1.Task{}
			}
			in := first(begun(), swarmSpec(proto.CloneOf(c.spec)), nothing()...)
			if entitled {
				in.GetStep().GetRepairTrigger().Entitlements = []string{"has_synthesis_swarm"}
			}
			o, _ := classified(t, in, c.answers)
			got := events(o)
			works := strings.Contains(got, "swarm.activated subtask.started agent.started")
			if works != (c.works && entitled) {
				t.Errorf("%s, entitled %v: %s", name, entitled, got)
			}
			s := o.GetStep().GetSnapshot()
			if parked := s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED; parked != works || works && s.GetGraphs()[0].GetSwarm().GetStartTime() == nil {
				t.Errorf("%s, entitled %v: %v, %v", name, entitled, s.GetStatus(), s.GetGraphs())
			}
		}
	}
}
