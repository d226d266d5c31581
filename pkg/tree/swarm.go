package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

const (
	// SwarmEntitlement is what a caller must be entitled to.
	SwarmEntitlement = "has_synthesis_swarm"
	// swarmGraph begins the calls of the children of a swarm, and names its layers in events.
	swarmGraph = "swarm"
	// aggregatorID is the id of the last task of a swarm.
	aggregatorID = "aggregator"
)

// Bounds and defaults of a swarm.
const (
	minSpecialists  = 2
	maxSpecialists  = MaxAgents - 1
	maxSwarmKinds   = 16
	defaultSources  = 5
	maxSwarmSources = 200
	maxListed       = 200 // sources that a prompt names
)

// CheckSwarm checks a swarm of an agent with these sub-agents and kinds of work. Its error is a
// *fault.FieldError whose path begins with field; nil for no swarm.
func CheckSwarm(field string, swarm *harnessv1.Swarm, agents []*harnessv1.SubAgent, kinds []string) error {
	if swarm == nil {
		return nil
	}
	specialists := swarm.GetSpecialists()
	switch n := len(specialists); {
	case n < minSpecialists || n > maxSpecialists:
		return fault.Invalid(field+".specialists", "has %d sub-agents: must be %d to %d", n, minSpecialists, maxSpecialists)
	case len(swarm.GetKinds()) > maxSwarmKinds:
		return fault.Invalid(field+".kinds", "has %d kinds, more than %d", len(swarm.GetKinds()), maxSwarmKinds)
	case swarm.MinSources != nil && (swarm.GetMinSources() < 1 || swarm.GetMinSources() > maxSwarmSources):
		return fault.Invalid(field+".min_sources", "%d: must be 1 to %d", swarm.GetMinSources(), maxSwarmSources)
	}
	unknown := func(at, name string) error {
		return fault.Invalid(at, "unknown sub-agent %q: must be one of %s", content.Cut(name, 80), strings.Join(names(agents), ", "))
	}
	for i, name := range specialists {
		at := fmt.Sprintf("%s.specialists[%d]", field, i)
		switch {
		case Lookup(agents, name) == nil:
			return unknown(at, name)
		case slices.Contains(specialists[:i], name):
			return fault.Invalid(at, "duplicate specialist %q", name)
		}
	}
	switch name := swarm.GetAggregator(); {
	case name == "":
		return fault.Invalid(field+".aggregator", "must be set")
	case Lookup(agents, name) == nil:
		return unknown(field+".aggregator", name)
	case slices.Contains(specialists, name):
		return fault.Invalid(field+".aggregator", "%q is one of the specialists; name another sub-agent", name)
	}
	for i, kind := range swarm.GetKinds() {
		if !slices.Contains(kinds, kind) {
			return fault.Invalid(fmt.Sprintf("%s.kinds[%d]", field, i), "unknown kind %q: must be one of %s", content.Cut(kind, 80), strings.Join(kinds, ", "))
		}
	}
	return nil
}

// SwarmWorks reports whether a swarm works on a run: its work is of this kind, its task has
// this many sources, and its caller has these entitlements.
func SwarmWorks(swarm *harnessv1.Swarm, kind string, sources int, entitlements []string) bool {
	if swarm == nil || !slices.Contains(entitlements, SwarmEntitlement) {
		return false
	}
	kinds := swarm.GetKinds()
	if len(kinds) == 0 {
		kinds = []string{quality.Synthesis, quality.FullPipeline}
	}
	return slices.Contains(kinds, kind) && sources >= int(cmp.Or(swarm.GetMinSources(), defaultSources))
}

// AddSwarm has a swarm work on the sources of the task before the first turn. It changes s.
func AddSwarm(s *harnessv1.Snapshot, swarm *harnessv1.Swarm) {
	var tasks []*harnessv1.GraphTask
	var before []string
	for i, name := range swarm.GetSpecialists() {
		id := "specialist-" + decimal(uint64(i)+1)
		before = append(before, id)
		tasks = append(tasks, &harnessv1.GraphTask{Id: id, Title: name, Agent: name})
	}
	tasks = append(tasks, &harnessv1.GraphTask{Id: aggregatorID, Title: swarm.GetAggregator(), Agent: swarm.GetAggregator(), After: before})
	g := newGraph("", tasks)
	g.Swarm = &harnessv1.SwarmWork{Sources: uint32(len(s.GetTask().GetSources()))} //nolint:gosec // at most 200
	s.Graphs = append(s.Graphs, g)
}

// StartSwarms sets when the swarms that now start did so. It changes s.
func StartSwarms(s *harnessv1.Snapshot, now time.Time) {
	for _, g := range s.GetGraphs() {
		if g.GetSwarm() != nil && g.GetSwarm().GetStartTime() == nil && s.GetStopping() == nil {
			g.Swarm.StartTime = timestamppb.New(now)
		}
	}
}

// succeeded returns the number of tasks of a layer that count as done.
func succeeded(g *harnessv1.Graph, layer uint32) (n uint32) {
	for _, t := range g.GetTasks() {
		if t.GetLayer() == layer && t.GetState() == harnessv1.GraphTaskState_GRAPH_TASK_STATE_DONE {
			n++
		}
	}
	return n
}

// IsSwarmCall reports whether a call id is that of a child of a swarm.
func IsSwarmCall(callID string) bool { return strings.HasPrefix(callID, swarmGraph+"/") }

func swarmActivated(g *harnessv1.Graph) *harnessv1.Event {
	var specialists []string
	for _, t := range g.GetTasks() {
		if t.GetTask().GetId() != aggregatorID {
			specialists = append(specialists, t.GetTask().GetAgent())
		}
	}
	return event.SwarmActivated(&harnessv1.SwarmActivated{
		SourceCount: g.GetSwarm().GetSources(), SpecialistCount: uint32(len(specialists)), Specialists: specialists, //nolint:gosec // at most 15
	})
}

// SwarmCompleted returns the event of the end of a swarm. s is the snapshot with its children.
func SwarmCompleted(s runstate.TreeFields, g *harnessv1.Graph, now time.Time) *harnessv1.Event {
	cost := uint64(0)
	for _, t := range g.GetTasks() {
		cost += Find(s, childCall(g, t.GetTask().GetId())).GetReport().GetUsage().GetCostMicroUsd()
	}
	return event.SwarmCompleted(&harnessv1.SwarmCompleted{
		SpecialistsSucceeded: succeeded(g, 1), AggregatorSucceeded: succeeded(g, 2) > 0,
		TotalDurationMs:  uint64(max(0, now.Sub(g.GetSwarm().GetStartTime().AsTime()).Milliseconds())),
		EstimatedCostUsd: float64(cost) / 1e6,
	})
}

// SwarmText returns the message for the first turn after a swarm: the answer of the aggregator,
// or the results of the specialists if it has not succeeded; empty if none has. text returns a result as a text.
func SwarmText(g *harnessv1.Graph, text func(*harnessv1.Content) (string, error)) (string, error) {
	var results []*harnessv1.GraphTaskProgress
	head := "Specialists have worked on the sources before you begin, and their results were merged. Check this before you rely on it:"
	for _, t := range g.GetTasks() {
		if t.GetState() != harnessv1.GraphTaskState_GRAPH_TASK_STATE_DONE {
			continue
		}
		if t.GetTask().GetId() == aggregatorID {
			said, err := text(t.GetResult())
			return head + "\n\n" + strings.TrimSpace(said), err
		}
		results = append(results, t)
	}
	if len(results) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString("Specialists have worked on the sources before you begin. Their results were not merged:")
	for _, t := range results {
		said, err := text(t.GetResult())
		if err != nil {
			return "", err
		}
		b.WriteString(givenText(t.GetTask(), said))
	}
	return b.String(), nil
}

// SwarmPrompt returns the prompt of a task of a swarm. The results of the specialists are added to that of
// the aggregator.
func SwarmPrompt(goal string, sources []*harnessv1.Source, task *harnessv1.GraphTask) string {
	var b strings.Builder
	if task.GetId() == aggregatorID {
		b.WriteString("Merge the results of the specialists below into one answer. Keep each finding with its source and its exact quote, " +
			"name contradictions, and leave out what no source supports.")
	} else {
		b.WriteString("Analyze the sources below from your angle. Report each finding with the id of its source and an exact quote from it. " +
			"Other specialists look at the same sources from other angles.")
	}
	b.WriteString("\n\n## Goal of the work\n\n" + strings.TrimSpace(goal) + "\n\n## Sources\n")
	for i, src := range sources {
		if i == maxListed {
			break
		}
		b.WriteString("\n- " + src.GetId())
		if src.GetTitle() != "" {
			b.WriteString(": " + content.Clip(src.GetTitle(), maxTitle))
		}
		if at := cmp.Or(src.GetPath(), src.GetUri()); at != "" {
			b.WriteString(" (" + at + ")")
		}
	}
	return b.String()
}
