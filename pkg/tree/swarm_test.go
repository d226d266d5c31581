package tree_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

func swarmAgents() []*harnessv1.SubAgent {
	var all []*harnessv1.SubAgent
	for _, name := range []string{"east", "west", "merge"} {
		all = append(all, &harnessv1.SubAgent{Name: name, Instructions: "i", Description: "d", ReadOnly: proto.Bool(true)})
	}
	return all
}

func swarm() *harnessv1.Swarm {
	return &harnessv1.Swarm{Specialists: []string{"east", "west"}, Aggregator: "merge"}
}

// TestSwarmWorks only with the entitlement, enough sources and the right kind of work.
func TestSwarmWorks(t *testing.T) {
	own := swarm()
	own.MinSources, own.Kinds = proto.Uint32(2), []string{"survey"}
	entitled := []string{"other", tree.SwarmEntitlement}
	for _, c := range []struct {
		swarm        *harnessv1.Swarm
		kind         string
		sources      int
		entitlements []string
		want         bool
	}{
		{swarm(), "synthesis", 5, entitled, true},
		{swarm(), "full_pipeline", 200, entitled, true},
		{swarm(), "synthesis", 4, entitled, false},
		{swarm(), "chat", 9, entitled, false},
		{swarm(), "", 9, entitled, false},
		{swarm(), "synthesis", 5, []string{"other"}, false},
		{swarm(), "synthesis", 5, nil, false},
		{nil, "synthesis", 5, entitled, false},
		{own, "survey", 2, entitled, true},
		{own, "survey", 1, entitled, false},
		{own, "synthesis", 5, entitled, false},
	} {
		if got := tree.SwarmWorks(c.swarm, c.kind, c.sources, c.entitlements); got != c.want {
			t.Errorf("%v, %q, %d sources, %v: %v", c.swarm, c.kind, c.sources, c.entitlements, got)
		}
	}
}

// TestCheckSwarm refuses swarms that cannot work, and names the field.
func TestCheckSwarm(t *testing.T) {
	kinds := []string{"chat", "synthesis"}
	for want, edit := range map[string]func(*harnessv1.Swarm){
		"":                                func(*harnessv1.Swarm) {},
		"swarm.specialists: has 1":        func(s *harnessv1.Swarm) { s.Specialists = s.Specialists[:1] },
		"swarm.specialists: has 16":       func(s *harnessv1.Swarm) { s.Specialists = slices.Repeat([]string{"east"}, 16) },
		`swarm.specialists[1]: unknown`:   func(s *harnessv1.Swarm) { s.Specialists[1] = "nowhere" },
		`swarm.specialists[1]: duplicate`: func(s *harnessv1.Swarm) { s.Specialists[1] = "east" },
		"swarm.aggregator: must be set":   func(s *harnessv1.Swarm) { s.Aggregator = "" },
		`swarm.aggregator: unknown`:       func(s *harnessv1.Swarm) { s.Aggregator = "nowhere" },
		`swarm.aggregator: "west" is one`: func(s *harnessv1.Swarm) { s.Aggregator = "west" },
		"swarm.min_sources: 0":            func(s *harnessv1.Swarm) { s.MinSources = proto.Uint32(0) },
		"swarm.min_sources: 201":          func(s *harnessv1.Swarm) { s.MinSources = proto.Uint32(201) },
		`swarm.kinds[1]: unknown kind`:    func(s *harnessv1.Swarm) { s.Kinds = []string{"chat", "novel"} },
		"swarm.kinds: has 17":             func(s *harnessv1.Swarm) { s.Kinds = slices.Repeat([]string{"chat"}, 17) },
	} {
		s := swarm()
		edit(s)
		err := tree.CheckSwarm("swarm", s, swarmAgents(), kinds)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestSwarm: the specialists start at the same time, the aggregator once they have ended, if one succeeded.
func TestSwarm(t *testing.T) {
	for _, c := range []struct {
		name          string
		done          string // tasks that succeed
		started       int
		text          string
		succeeded     uint32
		merged        bool
		costMicroUSD  uint64
		aggregatorHas string
	}{
		{"all", "specialist-1 specialist-2 aggregator", 3, "were merged. Check this before you rely on it:\n\nfound by aggregator", 2, true, 3_000_000, "## Result of west\n\nfound by specialist-2"},
		{"one fails", "specialist-1 aggregator", 3, "found by aggregator", 1, true, 3_000_000, "## Result of west\n\nIt did not succeed"},
		{"all fail", "", 2, "", 0, false, 2_000_000, ""},
		{"the aggregator fails", "specialist-1 specialist-2", 3, "were not merged:\n\n## Result of east\n\nfound by specialist-1", 2, false, 3_000_000, ""},
	} {
		s := &harnessv1.Snapshot{FirstSequence: 7, Task: &harnessv1.Task{Sources: make([]*harnessv1.Source, 5)}}
		tree.AddSwarm(s, swarm())
		tree.StartSwarms(s, time.Unix(10, 0))
		tree.StartSwarms(s, time.Unix(11, 0)) // the first time counts
		text := func(c *harnessv1.Content) (string, error) { return c.GetInline(), nil }
		var kinds []string
		schedule := func() {
			for _, e := range tree.Schedule(s, parent, swarmAgents(), false, time.Time{}).Events {
				switch {
				case e.GetSwarmActivated() != nil:
					a := e.GetSwarmActivated()
					if a.GetSourceCount() != 5 || a.GetSpecialistCount() != 2 || !slices.Equal(a.GetSpecialists(), []string{"east", "west"}) {
						t.Errorf("%s: %v", c.name, a)
					}
					kinds = append(kinds, "activated")
				case e.GetSubtaskStarted() != nil:
					kinds = append(kinds, e.GetSubtaskStarted().GetWorkflowType())
				case e.GetAgentStarted() != nil:
					if !tree.IsSwarmCall(e.GetAgentStarted().GetCallId()) {
						t.Errorf("%s: the call is %s", c.name, e.GetAgentStarted().GetCallId())
					}
					kinds = append(kinds, e.GetAgentStarted().GetAgent())
				}
			}
		}
		schedule()
		if got := strings.Join(kinds, " "); got != "activated swarm east west" || !tree.Opening(s) {
			t.Fatalf("%s: first %s", c.name, got)
		}
		for _, task := range []string{"specialist-1", "specialist-2", "aggregator"} {
			child := tree.Find(s, "swarm/"+task)
			if child == nil {
				continue
			}
			if g, made := tree.TaskOf(s, child); task == "aggregator" && c.aggregatorHas != "" {
				var given string
				for _, before := range tree.Before(g, made) {
					one, _ := tree.Given(before, text)
					given += one
				}
				if !strings.Contains(given, c.aggregatorHas) {
					t.Errorf("%s: the aggregator is given %q", c.name, given)
				}
			}
			tree.Take(s, &harnessv1.ChildReport{
				RunId: child.GetRunId(), Version: 9, Order: 1, Status: done, Accepted: slices.Contains(strings.Fields(c.done), task), Usage: &harnessv1.Usage{CostMicroUsd: 1_000_000},
			})
			tree.EndTask(s, child, content.Inline("found by "+task))
			schedule()
		}
		over := tree.Over(s)
		if len(over) != 1 || len(s.GetChildren()) != c.started {
			t.Fatalf("%s: %d over, %d children", c.name, len(over), len(s.GetChildren()))
		}
		said, err := tree.SwarmText(over[0], text)
		if err != nil || (said == "") != (c.text == "") || !strings.Contains(said, c.text) {
			t.Errorf("%s: the first turn reads %q, %v", c.name, said, err)
		}
		completed := tree.SwarmCompleted(s, over[0], time.Unix(12, 0)).GetSwarmCompleted()
		if completed.GetSpecialistsSucceeded() != c.succeeded || completed.GetAggregatorSucceeded() != c.merged ||
			completed.GetTotalDurationMs() != 2000 || completed.GetEstimatedCostUsd() != float64(c.costMicroUSD)/1e6 {
			t.Errorf("%s: %v", c.name, completed)
		}
	}
}

// TestSwarmPrompt has the goal and each source.
func TestSwarmPrompt(t *testing.T) {
	sources := []*harnessv1.Source{{Id: "s1", Title: "First", Path: "a.md"}, {Id: "s2", Uri: "https://example.org"}}
	for id, want := range map[string]string{"specialist-1": "Analyze the sources", "aggregator": "Merge the results"} {
		got := tree.SwarmPrompt("What is it?", sources, &harnessv1.GraphTask{Id: id})
		for _, part := range []string{want, "What is it?", "- s1: First (a.md)", "- s2 (https://example.org)"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is not in %q", id, part, got)
			}
		}
	}
}
