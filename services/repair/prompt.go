package repair

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// completion tells the model how work ends here.
const completion = `How work ends: you work without a person watching every step. Go on until the
task is done, using the tools you are offered. When it is done and you have checked it, call
work_complete with a short summary of the result. A message without a tool call does not end the
work; it only costs a turn.`

// style tells the model how to write.
const style = `How to answer: say what matters and nothing else. Do not announce what you are about
to do, do it. Several independent look-ups belong into one response as parallel calls.`

// SystemPrompt is the first message of a run: the agent's own instructions, the
// workspace as it was at the start, and the harness's guidance.
func SystemPrompt(agent *harnessv1.AgentSpec, environment *harnessv1.Environment) string {
	var b strings.Builder
	section := func(text string) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(text)
	}
	section(agent.GetInstructions())
	if environment.GetWorkingDirectory() != "" {
		section("Environment\nworking directory: " + environment.GetWorkingDirectory() +
			"\nplatform: " + environment.GetPlatform() +
			"\nfiles at the start (two levels deep):\n" + orElse(strings.TrimRight(environment.GetListing(), "\n"), "(empty)"))
	}
	for _, f := range environment.GetInstructionFiles() {
		section("Instructions from " + f.GetPath() + "\n" + f.GetContent())
	}
	section(completion)
	section(style)
	return b.String()
}
