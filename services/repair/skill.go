package repair

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxSkillsText bounds the list of skills in the system prompt, in bytes.
const maxSkillsText = 8 << 10

// usable reports whether a skill can be used.
func usable(s *harnessv1.Skill) bool { return s.GetProblem() == "" }

// skillsText lists the skills for the model; empty without any. Those that do not fit are named
// only.
func skillsText(skills []*harnessv1.Skill) string {
	var b strings.Builder
	for _, s := range skills {
		if !usable(s) {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("Skills: instructions for kinds of tasks. Before a task that one is for, read it with the tool skill.")
		}
		line := "\n- " + s.GetName() + ": " + s.GetDescription()
		if b.Len()+len(line) > maxSkillsText {
			line = "\n- " + s.GetName()
		}
		if b.Len()+len(line) > maxSkillsText {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
