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
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Bounds of a task, in bytes.
const (
	maxTitle  = 200
	maxPrompt = 64 << 10
)

// CheckGraph checks the tasks of a graph. Its error is a *fault.FieldError that names the task by its place below field, such as
// tasks[1].after.
func CheckGraph(field string, tasks []*harnessv1.GraphTask, agents []*harnessv1.SubAgent) error {
	if len(tasks) > maxTasks {
		return fault.Invalid(field, "has %d, more than %d", len(tasks), maxTasks)
	}
	place := map[string]int{}
	for i, t := range tasks {
		at := fmt.Sprintf("%s[%d]", field, i)
		_, doubled := place[t.GetId()]
		switch {
		case t.GetId() == "":
			return fault.Invalid(at+".id", "must be set: other tasks name it by its id in after")
		case !toolName.MatchString(t.GetId()):
			return fault.Invalid(at+".id", "%q must match [A-Za-z0-9_-]{1,64}", content.Cut(t.GetId(), 80))
		case doubled:
			return fault.Invalid(at+".id", "%q is used twice; give each task its own", t.GetId())
		case t.GetAgent() == "":
			return fault.Invalid(at+".agent", "must be set: the name of a sub-agent")
		case len(agents) == 0:
			return fault.Invalid(at+".agent", "there is no sub-agent %q: the agent has none; add it to its agents", content.Cut(t.GetAgent(), 80))
		case Lookup(agents, t.GetAgent()) == nil:
			return fault.Invalid(at+".agent", "there is no sub-agent %q; there are %s", content.Cut(t.GetAgent(), 80), strings.Join(names(agents), ", "))
		case strings.TrimSpace(t.GetPrompt()) == "":
			return fault.Invalid(at+".prompt", "must be set")
		case len(t.GetPrompt()) > maxPrompt:
			return fault.Invalid(at+".prompt", "has %d bytes, more than %d", len(t.GetPrompt()), maxPrompt)
		case len(t.GetTitle()) > maxTitle:
			return fault.Invalid(at+".title", "has %d bytes, more than %d", len(t.GetTitle()), maxTitle)
		}
		place[t.GetId()] = i
	}
	for i, t := range tasks {
		for _, before := range t.GetAfter() {
			if _, known := place[before]; !known {
				return fault.Invalid(fmt.Sprintf("%s[%d].after", field, i), "there is no task %q; use the id of one", content.Cut(before, 80))
			}
		}
	}
	for i, layer := range layers(tasks) {
		if layer == 0 {
			return fault.Invalid(fmt.Sprintf("%s[%d].after", field, i), "%q waits for itself, through the tasks before it; leave one of them out", tasks[i].GetId())
		}
	}
	return nil
}

func names(agents []*harnessv1.SubAgent) []string {
	var all []string
	for _, a := range agents {
		all = append(all, a.GetName())
	}
	return all
}

// layers returns the layer of each task, from 1: one more than that of the last task before it. 0: the
// task is part of a cycle, or comes after one.
func layers(tasks []*harnessv1.GraphTask) []uint32 {
	found, byID := make([]uint32, len(tasks)), map[string]uint32{}
	for range tasks {
		for i, t := range tasks {
			layer := uint32(1)
			for _, before := range t.GetAfter() {
				if byID[before] == 0 {
					layer = 0
					break
				}
				layer = max(layer, byID[before]+1)
			}
			found[i], byID[t.GetId()] = layer, layer
		}
	}
	return found
}

// newGraph returns a graph whose tasks have passed CheckGraph, without their prompts.
func newGraph(callID string, tasks []*harnessv1.GraphTask) *harnessv1.Graph {
	g := &harnessv1.Graph{CallId: callID}
	for i, layer := range layers(tasks) {
		t := tasks[i]
		g.Tasks = append(g.Tasks, &harnessv1.GraphTaskProgress{Layer: layer, Task: &harnessv1.GraphTask{
			Id: t.GetId(), Title: t.GetTitle(), Agent: t.GetAgent(), After: t.GetAfter(),
		}})
	}
	return g
}

// AddGraph has a run that starts work on a graph before its first turn. It changes s.
func AddGraph(s *harnessv1.Snapshot, tasks []*harnessv1.GraphTask) {
	if len(tasks) > 0 {
		s.Graphs = append(s.Graphs, newGraph("", tasks))
	}
}

// Opening reports whether the first turn waits for a graph.
func Opening(s runstate.TreeFields) bool {
	return slices.ContainsFunc(s.GetGraphs(), func(g *harnessv1.Graph) bool { return g.GetCallId() == "" })
}

// childCall returns the call id of the child of a task.
func childCall(g *harnessv1.Graph, taskID string) string {
	if g.GetSwarm() != nil {
		return swarmGraph + "/" + taskID
	}
	return cmp.Or(g.GetCallId(), "graph") + "/" + taskID
}

// TaskOf returns the task that a child works for, and its graph; nil if it works for none, or
// none any more.
func TaskOf(s runstate.TreeFields, c *harnessv1.Child) (*harnessv1.Graph, *harnessv1.GraphTaskProgress) {
	return taskOf(s, c)
}

func taskOf(s runstate.TreeFields, c *harnessv1.Child) (*harnessv1.Graph, *harnessv1.GraphTaskProgress) {
	for _, g := range s.GetGraphs() {
		for _, t := range g.GetTasks() {
			if t.GetState() == harnessv1.GraphTaskState_GRAPH_TASK_STATE_STARTED && c.GetCallId() == childCall(g, t.GetTask().GetId()) {
				return g, t
			}
		}
	}
	return nil, nil
}

// advance ends the layer at work if its tasks have ended, makes the children of the next one,
// and so on. It changes s and g.
func advance(s *harnessv1.Snapshot, run runlog.Run, g *harnessv1.Graph, agents []*harnessv1.SubAgent, now time.Time) (events []*harnessv1.Event) {
	last := lastLayer(g)
	for g.GetLayer() <= last {
		if g.GetLayer() > 0 {
			if slices.ContainsFunc(inLayer(g), func(t *harnessv1.GraphTaskProgress) bool {
				return t.GetState() == harnessv1.GraphTaskState_GRAPH_TASK_STATE_STARTED
			}) {
				return events
			}
			events = append(events, layerEnded(g, last))
		}
		if g.Layer++; g.GetLayer() > last {
			return events
		}
		if g.GetSwarm() != nil && g.GetLayer() == 1 {
			events = append(events, swarmActivated(g))
		}
		events = append(events, layerStarted(g, last))
		for _, t := range inLayer(g) {
			if before := failedBefore(g, t); before != "" {
				endTask(t, false, fmt.Sprintf("It was not started: task %s before it did not succeed.", before))
				continue
			}
			t.State = harnessv1.GraphTaskState_GRAPH_TASK_STATE_STARTED
			def, call := Lookup(agents, t.GetTask().GetAgent()), childCall(g, t.GetTask().GetId())
			c := &harnessv1.Child{
				RunId: ID(run, s.GetFirstSequence(), call), CallId: call, Agent: t.GetTask().GetAgent(),
				Writes: !def.GetReadOnly(), Worktree: def.GetWorkspace() == Worktree,
			}
			if def.GetDeadline() != nil {
				c.Deadline = timestamppb.New(now.Add(def.GetDeadline().AsDuration()))
			}
			s.Children = append(s.Children, c)
		}
	}
	return events
}

// inLayer returns the tasks of the layer at work.
func inLayer(g *harnessv1.Graph) []*harnessv1.GraphTaskProgress {
	var tasks []*harnessv1.GraphTaskProgress
	for _, t := range g.GetTasks() {
		if t.GetLayer() == g.GetLayer() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func lastLayer(g *harnessv1.Graph) (last uint32) {
	for _, t := range g.GetTasks() {
		last = max(last, t.GetLayer())
	}
	return last
}

// failedBefore returns the id of a task before t that has not succeeded; empty if all have, or, in a
// swarm, one.
func failedBefore(g *harnessv1.Graph, t *harnessv1.GraphTaskProgress) string {
	if g.GetSwarm() != nil && succeeded(g, t.GetLayer()-1) > 0 {
		return ""
	}
	for _, before := range g.GetTasks() {
		if before.GetState() == harnessv1.GraphTaskState_GRAPH_TASK_STATE_FAILED && slices.Contains(t.GetTask().GetAfter(), before.GetTask().GetId()) {
			return before.GetTask().GetId()
		}
	}
	return ""
}

// titles returns the titles of the tasks of the layer at work, in one line.
func titles(g *harnessv1.Graph) string {
	var all []string
	for _, t := range inLayer(g) {
		all = append(all, cmp.Or(t.GetTask().GetTitle(), t.GetTask().GetId()))
	}
	return content.Clip(strings.Join(all, ", "), maxTitle)
}

// artifactsOf returns how many artifacts the tasks of a layer have delivered.
func artifactsOf(g *harnessv1.Graph, layer uint32) (n uint32) {
	for _, t := range g.GetTasks() {
		if t.GetLayer() == layer {
			n += t.GetArtifacts()
		}
	}
	return n
}

func layerStarted(g *harnessv1.Graph, last uint32) *harnessv1.Event {
	kind := Delegate
	switch {
	case g.GetSwarm() != nil:
		kind = swarmGraph
	case g.GetCallId() == "":
		kind = "graph"
	}
	return event.SubtaskStarted(&harnessv1.SubtaskStarted{
		SubtaskIndex: g.GetLayer(), TotalSubtasks: last, Title: titles(g), WorkflowType: kind, Parallel: len(inLayer(g)) > 1,
	})
}

func layerEnded(g *harnessv1.Graph, last uint32) *harnessv1.Event {
	return event.SubtaskCompleted(&harnessv1.SubtaskCompleted{
		SubtaskIndex: g.GetLayer(), TotalSubtasks: last, Title: titles(g), ArtifactsCreated: artifactsOf(g, g.GetLayer()), IsLast: g.GetLayer() == last,
	})
}

func started(c *harnessv1.Child) *harnessv1.Event { return event.AgentStarted(c) }

// EndTask gives the task of a child that has ended its result, which is stored for the run. It changes s.
func EndTask(s runstate.TreeFields, c *harnessv1.Child, answer *harnessv1.Content) {
	if _, t := taskOf(s, c); t != nil {
		_, failed := ResultText(c, "")
		endTask(t, !failed, "")
		t.Why, t.Artifacts = stopText(c), c.GetReport().GetArtifacts()
		if t.Result = answer; size(answer) == 0 {
			t.Result = content.Inline(strings.TrimSpace(noAnswer + " " + c.GetReport().GetReason().GetMessage()))
		}
	}
}

func endTask(t *harnessv1.GraphTaskProgress, done bool, text string) {
	t.State, t.Result = harnessv1.GraphTaskState_GRAPH_TASK_STATE_FAILED, content.Inline(text)
	if done {
		t.State = harnessv1.GraphTaskState_GRAPH_TASK_STATE_DONE
	}
}

// Over returns the graphs all of whose layers have ended, and removes them. It changes s.
func Over(s *harnessv1.Snapshot) []*harnessv1.Graph {
	var over []*harnessv1.Graph
	s.Graphs = slices.DeleteFunc(s.GetGraphs(), func(g *harnessv1.Graph) bool {
		if ended := g.GetLayer() > lastLayer(g); ended {
			over = append(over, g)
			return true
		}
		return false
	})
	return over
}

// GraphText returns the results of a graph that is over. text returns a result as a text.
// failed is true unless each task has succeeded.
func GraphText(g *harnessv1.Graph, text func(*harnessv1.Content) (string, error)) (whole string, failed bool, err error) {
	var b strings.Builder
	for _, t := range g.GetTasks() {
		state := "done"
		if t.GetState() != harnessv1.GraphTaskState_GRAPH_TASK_STATE_DONE {
			state, failed = "failed", true
		}
		result, err := text(t.GetResult())
		if err != nil {
			return "", false, err
		}
		fmt.Fprintf(&b, "## %s (%s): %s\n\n", cmp.Or(t.GetTask().GetTitle(), t.GetTask().GetId()), t.GetTask().GetId(), state)
		if t.GetWhy() != "" {
			b.WriteString(t.GetWhy() + "\n\n")
		}
		b.WriteString(strings.TrimSpace(result) + "\n\n")
	}
	return strings.TrimSpace(b.String()), failed, nil
}

// Before returns the tasks whose results a task of the graph gets: all in after, which have
// succeeded unless it is a swarm.
func Before(g *harnessv1.Graph, task *harnessv1.GraphTaskProgress) []*harnessv1.GraphTaskProgress {
	var before []*harnessv1.GraphTaskProgress
	for _, t := range g.GetTasks() {
		if slices.Contains(task.GetTask().GetAfter(), t.GetTask().GetId()) {
			before = append(before, t)
		}
	}
	return before
}

// Given returns the result of a task as it is added to the prompt of a later one. text returns a result as a text.
func Given(before *harnessv1.GraphTaskProgress, text func(*harnessv1.Content) (string, error)) (string, error) {
	if before.GetState() != harnessv1.GraphTaskState_GRAPH_TASK_STATE_DONE {
		return givenText(before.GetTask(), "It did not succeed and has no result."), nil
	}
	result, err := text(before.GetResult())
	return givenText(before.GetTask(), result), err
}

// givenText returns a result of a task with its heading.
func givenText(task *harnessv1.GraphTask, result string) string {
	return fmt.Sprintf("\n\n## Result of %s\n\n%s", cmp.Or(task.GetTitle(), task.GetId()), strings.TrimSpace(result))
}
