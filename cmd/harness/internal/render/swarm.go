package render

import (
	"fmt"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// swarmLines returns the lines of a swarm; none for other events.
func (s Style) swarmLines(e *harnessv1.Event) []string {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_SwarmActivated:
		a := v.SwarmActivated
		return []string{fmt.Sprintf("swarm: %s look at %s: %s", plural(uint64(a.GetSpecialistCount()), "specialist"), plural(uint64(a.GetSourceCount()), "source"),
			clean(strings.Join(a.GetSpecialists(), ", ")))}
	case *harnessv1.Event_SwarmCompleted:
		c := v.SwarmCompleted
		took := (time.Duration(c.GetTotalDurationMs()) * time.Millisecond).Round(100 * time.Millisecond) //nolint:gosec // far below
		text := fmt.Sprintf("swarm: %s succeeded, %v, $%.2f", plural(uint64(c.GetSpecialistsSucceeded()), "specialist"), took, c.GetEstimatedCostUsd())
		switch {
		case c.GetAggregatorSucceeded():
			return []string{text}
		case c.GetSpecialistsSucceeded() == 0:
			return []string{s.bad("swarm: no specialist succeeded: the agent works without")}
		}
		return []string{s.bad(text + "; their results were not merged")}
	}
	return nil
}
