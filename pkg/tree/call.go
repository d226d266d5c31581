package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Names of the tools of agents that have sub-agents, next to one for each of these.
const (
	// AgentWait waits until a sub-agent in the background has ended.
	AgentWait = "agent_wait"
	// Delegate has sub-agents work on a graph of tasks.
	Delegate = "delegate"
	// Worktree is the workspace of a sub-agent that has a separate one.
	Worktree = "worktree"
)

// parameters is the JSON Schema of the arguments of a call of a sub-agent.
const parameters = `{"type":"object","properties":{"prompt":{"type":"string","minLength":1,` +
	`"description":"The whole task: the sub-agent sees nothing of this conversation. Name files, what is known, and what to report."},` +
	`"background":{"type":"boolean","description":"Do not wait: the result comes as a message."},` +
	`"continue":{"type":"string","description":"Run of an earlier call that has ended: the prompt continues it."},` +
	`"isolate":{"type":"boolean","description":"Work on a separate copy of the workspace; merge_agent_work brings its changes back."}},` +
	`"required":["prompt"],"additionalProperties":false}`

const waitParameters = `{"type":"object","properties":{"runs":{"type":"array","maxItems":64,"items":{"type":"string"},` +
	`"description":"Runs to wait for, until one of them has ended. Default: all in the background."}},"additionalProperties":false}`

const delegateParameters = `{"type":"object","properties":{"tasks":{"type":"array","minItems":1,"maxItems":32,"items":{"type":"object","properties":{` +
	`"id":{"type":"string"},"title":{"type":"string"},"agent":{"type":"string","description":"Name of a sub-agent."},"prompt":{"type":"string","minLength":1},` +
	`"after":{"type":"array","items":{"type":"string"},"description":"Ids of tasks whose results this one gets, and which have to succeed first."}},` +
	`"required":["id","agent","prompt"],"additionalProperties":false}}},"required":["tasks"],"additionalProperties":false}`

// Tools returns the tools of resolved definitions: one for each, agent_wait and delegate. Only a sub-agent that has read-only tools
// alone explores; any other counts as writing, so that plan mode has none of them, and delegate only if all of them explore.
func Tools(agents []*harnessv1.SubAgent) []*harnessv1.ToolSpec {
	var tools []*harnessv1.ToolSpec
	readOnly := true
	add := func(name, description, schema string, reads bool) {
		tools = append(tools, &harnessv1.ToolSpec{
			Name: name, Description: description, ParametersSchema: schema, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT,
			Annotations: &harnessv1.ToolAnnotations{
				Reads: reads, Explores: reads, Writes: !reads, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE,
			},
		})
	}
	for _, a := range agents {
		readOnly = readOnly && a.GetReadOnly()
		add(a.GetName(), "Sub-agent. "+a.GetDescription()+" Only its answer comes back.", parameters, a.GetReadOnly())
	}
	if len(agents) > 0 {
		add(AgentWait, "Wait until a sub-agent in the background has ended. Its result is the answer.", waitParameters, true)
		add(Delegate, "Have sub-agents work on tasks of which some need the results of others: side by side where they can, one after the other where they must.",
			delegateParameters, readOnly)
	}
	return tools
}

// arguments are those of a call of a sub-agent, of agent_wait and of delegate.
type arguments struct {
	Prompt     string   `json:"prompt"`
	Background bool     `json:"background"`
	Continue   string   `json:"continue"`
	Isolate    bool     `json:"isolate"`
	Runs       []string `json:"runs"`
	Tasks      []struct {
		ID     string   `json:"id"`
		Title  string   `json:"title"`
		Agent  string   `json:"agent"`
		Prompt string   `json:"prompt"`
		After  []string `json:"after"`
	} `json:"tasks"`
}

func (a arguments) graph() []*harnessv1.GraphTask {
	var tasks []*harnessv1.GraphTask
	for _, t := range a.Tasks {
		tasks = append(tasks, &harnessv1.GraphTask{Id: t.ID, Title: t.Title, Agent: t.Agent, Prompt: t.Prompt, After: t.After})
	}
	return tasks
}

// Prompt returns the prompt of the arguments of a call of a sub-agent, which fit its schema.
func Prompt(text string) (string, error) {
	var a arguments
	err := json.Unmarshal([]byte(text), &a)
	return a.Prompt, err
}

// TaskPrompt returns the prompt of a task from the arguments of a call of delegate.
func TaskPrompt(text, id string) (string, error) {
	var a arguments
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return "", err
	}
	for _, t := range a.Tasks {
		if t.ID == id {
			return t.Prompt, nil
		}
	}
	return "", fmt.Errorf("there is no task %q", id)
}

// Request reads what a call wants, which fits the schema of its tool, in a run with a snapshot. It
// returns nil for a call of a sub-agent with a prompt alone. The error is for the model.
func Request(s runstate.TreeFields, agents []*harnessv1.SubAgent, tool, text string) (*harnessv1.Delegation, error) {
	var a arguments
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, err
	}
	switch tool {
	case AgentWait:
		return requestWait(s, a.Runs)
	case Delegate:
		tasks := a.graph()
		if err := CheckGraph("tasks", tasks, agents); err != nil {
			return nil, err
		}
		for _, t := range tasks {
			t.Prompt = ""
		}
		return &harnessv1.Delegation{Tasks: tasks}, nil
	}
	def := Lookup(agents, tool)
	c := FindRun(s, a.Continue)
	isolated := a.Isolate || def.GetWorkspace() == Worktree
	if a.Continue != "" {
		isolated = c.GetWorktree()
	}
	switch {
	case a.Continue != "" && c == nil:
		return nil, fmt.Errorf("continue: %q is not a sub-agent of this run", content.Cut(a.Continue, 80))
	case a.Continue != "" && c.GetAgent() != tool:
		return nil, fmt.Errorf("continue: %s is a run of %s; call that", a.Continue, c.GetAgent())
	case a.Continue != "" && c.GetReport().GetAbsent():
		return nil, fmt.Errorf("continue: %s was deleted; start another one", a.Continue)
	case a.Continue != "" && !Ended(c):
		return nil, fmt.Errorf("continue: %s has not ended; wait for it", a.Continue)
	case a.Continue != "" && a.Isolate && !c.GetWorktree():
		return nil, errors.New("isolate: the run to continue works in the shared workspace; leave one of the two out")
	case a.Background && !def.GetReadOnly() && !isolated:
		return nil, fmt.Errorf("background: %s may change files of the workspace while you do; set isolate, or leave background out", tool)
	case !a.Background && a.Continue == "" && !a.Isolate:
		return nil, nil //nolint:nilnil // nothing but the prompt
	}
	return &harnessv1.Delegation{Background: a.Background, ContinueRun: a.Continue, Isolate: a.Isolate}, nil
}

// requestWait returns what a call of agent_wait waits for.
func requestWait(s runstate.TreeFields, runs []string) (*harnessv1.Delegation, error) {
	if len(runs) == 0 {
		for _, c := range s.GetChildren() {
			if c.GetBackground() && !c.GetTold() {
				runs = append(runs, c.GetRunId())
			}
		}
		if len(runs) == 0 {
			return nil, errors.New("no sub-agent works in the background; you have all results")
		}
	}
	for _, id := range runs {
		if FindRun(s, id) == nil {
			return nil, fmt.Errorf("runs: %q is not a sub-agent of this run", content.Cut(id, 80))
		}
	}
	slices.Sort(runs)
	return &harnessv1.Delegation{Runs: slices.Compact(runs)}, nil
}

// Needs returns the number of children that a call of a tool makes.
func Needs(tool string, d *harnessv1.Delegation) int {
	switch {
	case tool == AgentWait || d.GetContinueRun() != "":
		return 0
	case tool == Delegate:
		return len(d.GetTasks())
	default:
		return 1
	}
}

// reserved reports whether a sub-agent may not have a name.
func reserved(name string) bool {
	return name == AgentWait || name == Delegate || strings.EqualFold(name, "merge_agent_work")
}
