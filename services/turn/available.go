package turn

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// The harness's own tools.
const (
	WorkComplete = "work_complete"
	AskUser      = "ask_user"
	taskComplete = "task_complete" // accepted, not offered
)

// Canonical is the name of a tool that goes by another one too.
func Canonical(name string) string {
	if name == taskComplete {
		return WorkComplete
	}
	return name
}

// HarnessTools are the harness's own tools. Every agent is offered them unasked,
// but for ask_user where nobody is there to be asked.
func HarnessTools() []*harnessv1.ToolSpec {
	return []*harnessv1.ToolSpec{
		{
			Name: WorkComplete,
			Description: "End the work. Call it once the task is done and checked, with a summary of what was achieved " +
				"and where the results are. It is the only way to finish.",
			ParametersSchema: `{"type":"object","properties":{"summary":{"type":"string","description":"What was achieved, in a few sentences."}},"required":["summary"]}`,
			Origin:           harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
			Annotations:      &harnessv1.ToolAnnotations{Idempotent: true, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_ANCHORING},
		},
		{
			Name: AskUser,
			Description: "Ask the user a question and wait for the answer, which may take days. Use it only when the task cannot go on " +
				"without something that only the user knows or may decide.",
			ParametersSchema: `{"type":"object","properties":{"question":{"type":"string","minLength":1,"description":"One question, with what the user has to know to answer it."},` +
				`"options":{"type":"array","items":{"type":"string"},"description":"Answers to choose from, if there are some that fit."}},"required":["question"]}`,
			Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
			Annotations: &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE},
		},
	}
}

// AvailableTools returns the tools that the model can call in the mode of work of
// s, and the names of those that only other modes allow.
func AvailableTools(s *harnessv1.Snapshot, host []*harnessv1.ToolSpec, clients *harnessv1.ClientTools, definition *agent.Definition) (available []*harnessv1.ToolSpec, blocked map[string]bool) {
	blocked = map[string]bool{}
	for _, t := range allTools(s, host, clients, definition) {
		if mode.Allows(runstate.Mode(s), definition.Modes, t) {
			available = append(available, t)
		} else {
			blocked[t.GetName()] = true
		}
	}
	return available, blocked
}

// allTools returns the tools of a run: the tool host's, the harness's and those that
// clients run, in this order, so that what changes comes last. A client's tool with
// the name of another is left out.
func allTools(s *harnessv1.Snapshot, host []*harnessv1.ToolSpec, clients *harnessv1.ClientTools, definition *agent.Definition) []*harnessv1.ToolSpec {
	all := append([]*harnessv1.ToolSpec(nil), host...)
	if s.GetConfig().GetWorkItems().GetEnabled() {
		all = append(all, workitem.Tools()...)
	}
	for _, t := range HarnessTools() {
		if t.GetName() != AskUser || AsksUser(s, definition) {
			all = append(all, t)
		}
	}
	taken := map[string]bool{taskComplete: true, AskUser: true}
	for _, t := range all {
		taken[t.GetName()] = true
	}
	for _, t := range clients.GetTools() {
		if !taken[t.GetName()] {
			taken[t.GetName()] = true
			all = append(all, t)
		}
	}
	return all
}

// AsksUser reports whether the agent of a run may ask questions: the run is not
// autonomous, and the policy of the agent does not deny it.
func AsksUser(s *harnessv1.Snapshot, definition *agent.Definition) bool {
	decision, _ := definition.Policy.Decide(&harnessv1.ToolSpec{Name: AskUser}, "{}", nil, false)
	return !s.GetAutonomous() && decision != harnessv1.ToolDecision_TOOL_DECISION_DENY
}

// ParseClientTools reads the tools that a snapshot refers to.
func ParseClientTools(text string) (*harnessv1.ClientTools, error) {
	tools := &harnessv1.ClientTools{}
	return tools, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(text), tools)
}

// question is what a call of ask_user asks.
func question(arguments string) string {
	var asked struct {
		Question string `json:"question"`
	}
	_ = json.Unmarshal([]byte(arguments), &asked) // checked against the schema before
	return asked.Question
}
