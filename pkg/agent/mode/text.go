package mode

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	maxNamed       = 20  // tools of a mode in a text
	maxShown       = 400 // bytes of a description in a text
	planMeaning    = "look, search, plan and ask. Only tools that change nothing are offered. Do not try to change files or run commands; work out what to do."
	executeMeaning = "do the work. All tools may be used."
)

// Describe returns the section of the system prompt about the modes. current is the mode
// that the run starts in.
func Describe(current string, custom []*harnessv1.ModeSpec) string {
	var b strings.Builder
	b.WriteString("# Modes\n\nYou work in one mode at a time. The mode decides which tools you may use; the others are refused.\n\n")
	for _, name := range Names(custom) {
		fmt.Fprintf(&b, "- %s: %s\n", name, meaning(name, custom))
	}
	fmt.Fprintf(&b, "\nThe run starts in %s mode. You cannot change the mode yourself. When it changes, a message tells you, and the newest such message counts. "+
		"work_complete may be called in every mode.", resolve(current))
	return b.String()
}

// ChangeText returns the message about a change of the mode.
func ChangeText(from, to string, custom []*harnessv1.ModeSpec) string {
	return fmt.Sprintf("The mode of work is now %s; it was %s. In %s mode: %s This holds from now on, until another message tells of a change.",
		resolve(to), resolve(from), resolve(to), meaning(resolve(to), custom))
}

// BlockedText returns the result of a call of a tool that the mode does not allow.
func BlockedText(name, tool string) string {
	name, tool = resolve(name), content.Cut(tool, 64)
	text := fmt.Sprintf("%s may not be used in %s mode; nothing was run. ", tool, name)
	if name == Plan {
		return text + "Go on with tools that only look, and write down what you would do with it as a part of your plan. " +
			"When the plan is complete, call work_complete with it: the user decides when it is carried out."
	}
	return text + "Use the tools that you are offered. If the work cannot go on without it, call work_complete, say what is done, and that the rest needs another mode."
}

// meaning describes on one line what a mode is for and what it allows.
func meaning(name string, custom []*harnessv1.ModeSpec) string {
	switch name {
	case Plan:
		return planMeaning
	case Execute:
		return executeMeaning
	}
	m := find(name, custom)
	var parts []string
	if text := strings.Join(strings.Fields(m.GetDescription()), " "); text != "" {
		if short := content.Cut(text, maxShown); short != text {
			text = short + "…"
		} else if !strings.HasSuffix(text, ".") {
			text += "."
		}
		parts = append(parts, text)
	}
	tools := m.GetTools()
	switch {
	case len(tools) > 0:
		named := strings.Join(tools[:min(len(tools), maxNamed)], ", ")
		if more := len(tools) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		allowed := "Only these tools may be used"
		if m.GetReadOnly() {
			allowed = "Only these tools may be used, as far as they change nothing"
		}
		parts = append(parts, allowed+": "+named+".")
	case m.GetReadOnly():
		parts = append(parts, "Only tools that change nothing may be used.")
	default:
		parts = append(parts, "All tools may be used.")
	}
	return strings.Join(parts, " ")
}
