package repair

import (
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
