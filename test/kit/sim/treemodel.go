package sim

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Agents returns the sub-agents of a run whose model delegates: helper may write and delegates
// to leaf, scout changes nothing.
func Agents() []*harnessv1.SubAgent {
	yes := true
	turns := uint32(8)
	leaf := &harnessv1.SubAgent{Name: "leaf", Description: "Looks.", Instructions: "Look.", ReadOnly: &yes, MaxTurns: &turns}
	return []*harnessv1.SubAgent{
		{Name: "helper", Description: "Helps.", Instructions: "Help.", MaxTurns: &turns, Agents: []*harnessv1.SubAgent{leaf}},
		{Name: "scout", Description: "Looks.", Instructions: "Look.", ReadOnly: &yes, MaxTurns: &turns},
	}
}

// Graph returns tasks for the sub-agents of a run that the model knows as name. place is unique in
// the run.
func Graph(name, place string) []*harnessv1.GraphTask {
	goal := func(task string, turns int) string { return Goal(name+"."+place+task, turns) }
	return []*harnessv1.GraphTask{
		{Id: "a", Agent: "scout", Prompt: goal("a", 1)},
		{Id: "b", Agent: "helper", Prompt: goal("b", 2)},
		{Id: "c", Agent: "scout", Prompt: goal("c", 1), After: []string{"a", "b"}},
	}
}

// treeTurn is the most that a turn of a run in a tree uses, in tokens.
const treeTurn = 10_000

func treeUsage() *harnessv1.Usage {
	return &harnessv1.Usage{InputTokens: treeTurn - 200, OutputTokens: 200}
}

func has(tools []*harnessv1.ToolSpec, name string) bool {
	return slices.ContainsFunc(tools, func(t *harnessv1.ToolSpec) bool { return t.GetName() == name })
}

// treeKinds returns the kinds of responses of a run in a tree: those for which it has tools.
func treeKinds(tools []*harnessv1.ToolSpec) []string {
	kinds := []string{"look", "look", "question", "silent"}
	if has(tools, "act") {
		kinds = append(kinds, "act", "act", "run", "mixed")
	}
	for _, leaf := range []string{"helper", "leaf"} {
		if has(tools, leaf) {
			kinds = append(kinds, leaf, leaf, "several")
		}
	}
	if has(tools, "scout") {
		kinds = append(kinds, "scout", "background", "background", "isolated", "graph", "several")
	}
	if has(tools, tree.AgentWait) {
		kinds = append(kinds, "wait", "continue")
	}
	return kinds
}

// endedAgent is a sub-agent that has ended, as the model sees it: by the result of a call.
type endedAgent struct{ tool, run string }

var resultHead = regexp.MustCompile(`(?s)^\[([a-z]+): .*; run (a-[a-z2-7]{24})\]`)

// lastEnded returns the newest sub-agent whose result is in a conversation.
func lastEnded(messages []*harnessv1.Message) (e endedAgent) {
	for _, m := range messages {
		if found := resultHead.FindStringSubmatch(content.Text(m.GetContent())); m.GetRole() == harnessv1.Role_ROLE_TOOL && found != nil {
			e = endedAgent{tool: found[1], run: found[2]}
		}
	}
	return e
}

// delegate adds the calls of a response that concerns sub-agents. It reports whether the response is one.
func (p plan) delegate(add func(tool, arguments string)) bool {
	call := func(tool string, n int, more map[string]any) {
		arguments := map[string]any{"prompt": Goal(fmt.Sprintf("%s.%d-%d", p.name, p.at, n), 1+p.at%2)}
		for name, value := range more {
			arguments[name] = value
		}
		text, _ := json.Marshal(arguments)
		add(tool, string(text))
	}
	switch p.kind {
	case "helper", "scout", "leaf":
		for n := range min(p.ops, 2) {
			call(p.kind, n, nil)
		}
	case "several":
		for n := range p.ops {
			call([...]string{"scout", "helper", "leaf"}[(p.at+n)%3], n, nil) // some are not there
		}
	case "background":
		call("scout", 0, map[string]any{"background": true})
	case "isolated":
		call("helper", 0, map[string]any{"isolate": true, "background": p.ops == 1})
	case "graph":
		var tasks []map[string]any
		for _, t := range Graph(p.name, fmt.Sprint(p.at)) {
			tasks = append(tasks, map[string]any{"id": t.GetId(), "agent": t.GetAgent(), "prompt": t.GetPrompt(), "after": append([]string{}, t.GetAfter()...)})
		}
		text, _ := json.Marshal(map[string]any{"tasks": tasks})
		add(tree.Delegate, string(text))
	case "wait":
		add(tree.AgentWait, "{}")
	case "continue":
		call(p.ended.tool, 0, map[string]any{"continue": p.ended.run, "background": p.ended.tool != "helper" && p.ops == 1})
	default:
		return false
	}
	return true
}
