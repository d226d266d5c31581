package repair

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxSkillsText bounds the list of skills in the system prompt, in bytes.
const maxSkillsText = 8 << 10

// usable reports whether a skill can be used.
func usable(s *harnessv1.Skill) bool { return s.GetProblem() == "" }

// skillsText lists the skills for the model; empty without any. Those whose descriptions do not fit next to
// the names of all others are named only.
func skillsText(skills []*harnessv1.Skill) string {
	var b strings.Builder
	names := 0 // bytes of the names that follow
	for _, s := range skills {
		if usable(s) {
			names += len("\n- " + s.GetName())
		}
	}
	for _, s := range skills {
		if !usable(s) {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("Skills: instructions for kinds of tasks. Before a task that one is for, read it with the tool skill.")
		}
		name := "\n- " + s.GetName()
		names -= len(name)
		line := name + ": " + s.GetDescription()
		if b.Len()+len(line)+names > maxSkillsText {
			line = name
		}
		if b.Len()+len(line) > maxSkillsText {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// maxBrokenSkills bounds the skills that are named because they cannot be used.
const maxBrokenSkills = 16

// brokenSkills names the skills that cannot be used, with the place and the reason; empty without any.
func brokenSkills(skills []*harnessv1.Skill) string {
	var named []string
	more := 0
	for _, s := range skills {
		switch {
		case usable(s):
		case len(named) == maxBrokenSkills:
			more++
		default:
			named = append(named, s.GetFolder()+"/SKILL.md: "+s.GetProblem())
		}
	}
	if len(named) == 0 {
		return ""
	}
	text := "Skills that cannot be used until the user corrects them:\n" + strings.Join(named, "\n")
	if more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return text
}
