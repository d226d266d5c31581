package repair

import (
	"cmp"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// completion tells the model how work ends here.
const completion = `How work ends: you work without a person watching every step. Go on until the
task is done, using the tools you are offered. When it is done and you have checked it, call
work_complete with a short summary of the result. A message without a tool call does not end the
work; it only costs a turn. An end that does not stand up to checking is sent back with what is missing.`

// style tells the model how to write.
const style = `How to answer: say what matters and nothing else. Do not announce what you are about
to do, do it. Several independent look-ups belong into one response as parallel calls.`

// marked tells the model whose word guidance is.
const marked = `Some messages in the user's place come from the harness that runs you: reminders,
corrections, news of what has changed. They are about how you work; the task is the user's.`

// SystemPrompt is the first message of a run: the agent's own instructions, the
// workspace as it was at the start, the instruction files found in it, what context
// providers gave, and the harness's guidance. It never changes in a run.
func SystemPrompt(agent *harnessv1.AgentSpec, environment *harnessv1.Environment, contexts []Section, clients []*harnessv1.ToolSpec) string {
	var b strings.Builder
	add := func(text string) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(text)
	}
	add(agent.GetInstructions())
	if environment.GetWorkingDirectory() != "" {
		add("Environment\nworking directory: " + environment.GetWorkingDirectory() +
			"\nplatform: " + environment.GetPlatform() +
			"\nfiles at the start (two levels deep):\n" + cmp.Or(strings.TrimRight(environment.GetListing(), "\n"), "(empty)"))
	}
	for _, f := range environment.GetInstructionFiles() {
		add("Instructions from " + f.GetPath() + "\n" + f.GetContent())
	}
	for _, c := range contexts {
		if strings.TrimSpace(c.Text) != "" {
			add(c.Name + "\n" + strings.TrimSpace(c.Text))
		}
	}
	add(toolUse(append(environment.GetTools()[:len(environment.GetTools()):len(environment.GetTools())], clients...)))
	add(mode.Describe(cmp.Or(agent.GetMode(), mode.Execute), agent.GetModes()))
	add(completion)
	add(style)
	add(marked)
	return b.String()
}

// toolUse lists when to use which tool.
func toolUse(tools []*harnessv1.ToolSpec) string {
	var b strings.Builder
	for _, t := range tools {
		if t.GetUsage() != "" {
			b.WriteString("\n" + t.GetName() + ": " + strings.Join(strings.Fields(t.GetUsage()), " "))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Which tool when" + b.String()
}
