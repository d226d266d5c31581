package repair

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// style tells the model how to write.
const style = `How to answer: say what matters and nothing else. Do not announce what you are about
to do, do it. Several independent look-ups belong into one response as parallel calls.`

// shownEnvironment returns the environment without the parts that the system prompt leaves out. Its
// tools are always in it.
func shownEnvironment(shown *harnessv1.PromptConfig, environment *harnessv1.Environment) *harnessv1.Environment {
	if environment == nil || shown.GetEnvironment() && shown.GetInstructionFiles() {
		return environment
	}
	left := proto.CloneOf(environment)
	if !shown.GetEnvironment() {
		left.WorkingDirectory, left.Platform, left.Listing = "", "", ""
	}
	if !shown.GetInstructionFiles() {
		left.InstructionFiles = nil
	}
	return left
}

// SystemPrompt is the first message of a run: the agent's own instructions, the
// workspace as it was at the start, the instruction files found in it, what context
// providers gave, and the harness's guidance. It describes what holds for this run: a
// part, or a subsystem, that is switched off is not in it. It never changes in a run.
func SystemPrompt(spec *harnessv1.RunSpec, config *harnessv1.LoopConfig, environment *harnessv1.Environment, contexts []Section) string {
	agent, shown := spec.GetAgent(), config.GetPrompt()
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
	add(skillsText(environment.GetSkills()))
	for _, c := range contexts {
		if strings.TrimSpace(c.Text) != "" {
			add(c.Name + "\n" + strings.TrimSpace(c.Text))
		}
	}
	if shown.GetTools() {
		add(toolUse(slices.Concat(environment.GetTools(), spec.GetClientTools())))
		add(delegation(agent.GetAgents()))
	}
	if shown.GetModes() {
		add(mode.Describe(cmp.Or(agent.GetMode(), mode.Execute), agent.GetModes()))
	}
	if shown.GetCompletion() {
		add(completion(spec, config))
	}
	if shown.GetStyle() {
		add(style)
	}
	if shown.GetHarnessMessages() {
		add(harnessMessages(spec, config))
	}
	return b.String()
}

// completion tells the model how work ends in this run.
func completion(spec *harnessv1.RunSpec, config *harnessv1.LoopConfig) string {
	text := `How work ends: you work without a person watching every step. Go on until the
task is done, using the tools you are offered. When it is done and you have checked it, call
work_complete with a short summary of the result.`
	if spec.GetOutputSchema() != "" {
		text = strings.TrimSuffix(text, ".") + ", and the result itself as output."
	}
	switch {
	case config.GetStop().GetRequireWorkComplete():
		text += " A message without a tool call does not end the\nwork; it only costs a turn."
	case reminds(config):
		text += " A message without a tool call ends the work\ntoo, once you have been reminded to decide."
	default:
		text += " A message without a tool call ends the work too."
	}
	if checksEnds(spec, config) {
		text += " An end that does not stand up to checking is sent back with what is missing."
	}
	return text
}

// reminds reports whether the run reminds a silent agent to decide.
func reminds(config *harnessv1.LoopConfig) bool {
	return config.GetContinuation().GetEnabled() && config.GetContinuation().GetMaxPrompts() > 0
}

// checksEnds reports whether something checks the end of the work in addition to work_complete.
func checksEnds(spec *harnessv1.RunSpec, config *harnessv1.LoopConfig) bool {
	return spec.GetOutputSchema() != "" || config.GetWorkItems().GetEnabled() ||
		config.GetContract().GetEnabled() && spec.GetContract() != nil ||
		config.GetHooks().GetEnabled() && slices.ContainsFunc(spec.GetAgent().GetHooks(), func(h *harnessv1.Hook) bool {
			return h.GetTopic() == harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP
		})
}

// harnessMessages tells the model which messages in the user's place the harness writes in
// this run; empty if it writes none.
func harnessMessages(spec *harnessv1.RunSpec, config *harnessv1.LoopConfig) string {
	var kinds []string
	add := func(on bool, kind string) {
		if on {
			kinds = append(kinds, kind)
		}
	}
	add(config.GetGuidance().GetEnabled() || config.GetGuidance().GetJit(), "advice")
	add(reminds(config), "reminders")
	add(config.GetDoomLoop().GetEnabled(), "corrections")
	add(config.GetStop().GetRequireWorkComplete() || checksEnds(spec, config), "what is missing at an end")
	add(config.GetPrompt().GetModes() || config.GetPrompt().GetInstructionFiles(), "news of what has changed")
	if len(kinds) == 0 {
		return ""
	}
	return "Some messages in the user's place come from the harness that runs you: " + strings.Join(kinds, ",\n") +
		". They are about how you work; the task is the user's."
}

// delegation tells the model when to call its sub-agents; empty without any.
func delegation(agents []*harnessv1.SubAgent) string {
	if len(agents) == 0 {
		return ""
	}
	var names []string
	for _, a := range agents {
		names = append(names, a.GetName())
	}
	return "Sub-agents: " + strings.Join(names, ", ") + `
Each call is a run with a separate window, of which you get the answer alone. Delegate work that needs many
reads or can be done apart from the rest, such as {"prompt": "Find every caller of Total in src. Report file and line."}. Do yourself what
takes one or two calls. The prompt is all that a sub-agent sees: name files, what is known, and what to report. Make
calls that do not need each other's answers in one response: they run at the same time.`
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
