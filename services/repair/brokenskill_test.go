package repair_test

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestSkillsThatCannotBeUsedAreNamed: to the person and the model, with the file and the reason.
func TestSkillsThatCannotBeUsedAreNamed(t *testing.T) {
	described := nothing()
	described[1].GetEnvironment().Skills = []*harnessv1.Skill{
		{Name: "good", Description: "Works.", Folder: "/w/.claude/skills/good"},
		{Name: "odd", Folder: "/w/.claude/skills/odd", Problem: "its front matter is not YAML"},
	}
	o := decide(t, first(begun(), spec(), described...))
	var said []string
	for _, e := range o.GetEvents() {
		if g := e.GetGuidanceInjected(); g.GetKind() == "skills" {
			said = append(said, g.GetText())
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "\n/w/.claude/skills/odd/SKILL.md: its front matter is not YAML") || strings.Contains(said[0], "good") {
		t.Errorf("named: %q", said)
	}
}
