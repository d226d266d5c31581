package render

import (
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestSwarmLines: each end of a swarm has a line.
func TestSwarmLines(t *testing.T) {
	for want, e := range map[string]*harnessv1.Event{
		"swarm: 2 specialists look at 5 sources: east, west": event.SwarmActivated(&harnessv1.SwarmActivated{
			SourceCount: 5, SpecialistCount: 2, Specialists: []string{"east", "west"},
		}),
		"swarm: 1 specialist succeeded, 2.5s, $0.25": event.SwarmCompleted(&harnessv1.SwarmCompleted{
			SpecialistsSucceeded: 1, AggregatorSucceeded: true, TotalDurationMs: 2500, EstimatedCostUsd: 0.25,
		}),
		"swarm: 2 specialists succeeded, 0s, $0.00; their results were not merged": event.SwarmCompleted(&harnessv1.SwarmCompleted{SpecialistsSucceeded: 2}),
		"swarm: no specialist succeeded: the agent works without":                  event.SwarmCompleted(&harnessv1.SwarmCompleted{}),
	} {
		if got := (Style{}).swarmLines(e); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
