package skill

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func document(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\nallowed-tools: run_command\n---\n# Text\n"
}

func TestTheNearestSkillHasAName(t *testing.T) {
	skills, left := Select([]Found{
		{"app/.agents/skills/pdf", document("pdf", "near")}, {".claude/skills/pdf", document("pdf", "far")}, {"~/.agents/skills/review", document("review", `"a\u200b b"`)},
	})
	want := []Skill{{"pdf", "near", "app/.agents/skills/pdf"}, {"review", "a b", "~/.agents/skills/review"}}
	if !reflect.DeepEqual(skills, want) {
		t.Errorf("%+v", skills)
	}
	if len(left) != 1 || left[0].Folder != ".claude/skills/pdf" || !strings.Contains(left[0].Reason, "app/.agents/skills/pdf") {
		t.Errorf("%+v", left)
	}
}

func TestWhatIsNoSkillIsLeftOutWithItsReason(t *testing.T) {
	for head, want := range map[string]string{
		"# A skill\n":                   "no front matter",
		"":                              "no front matter",
		"---\nname: x\n":                "no end",
		"---\nname: [\n---\n":           "not valid YAML",
		"---\n---\n":                    "is not of the form",
		document("y", "d"):              "not that of its folder",
		document("X", "d"):              "is not of the form",
		document("x--x", "d"):           "is not of the form",
		document("../x", "d"):           "is not of the form",
		"---\nname: x\n---\n":           "no description",
		document("x", `"\u200b\u202e"`): "no description",
		"---\n" + strings.Repeat("#", MaxHead) + "\nname: x\ndescription: d\n---\n": "no end",
	} {
		if skills, left := Select([]Found{{"a/x", head}}); len(skills) != 0 || len(left) != 1 || !strings.Contains(left[0].Reason, want) {
			t.Errorf("%.40q: %+v, %+v, want %s", head, skills, left, want)
		}
	}
	for _, head := range []string{"\ufeff" + document("x", "d"), strings.ReplaceAll(document("x", "d"), "\n", "\r\n"), "---\nname: x\ndescription: |\n  d\n---"} {
		if skills, left := Select([]Found{{"a/x", head}}); len(skills) != 1 || skills[0].Description != "d" {
			t.Errorf("%q: %+v, %+v", head, skills, left)
		}
	}
}

func TestDescriptionsAndTheCatalogueAreBounded(t *testing.T) {
	skills, _ := Select([]Found{{"x", document("x", strings.Repeat("w ", 2000))}})
	if len(skills) != 1 || len(skills[0].Description) > MaxDescription || !strings.HasSuffix(skills[0].Description, "…") {
		t.Errorf("%+v", skills)
	}
	for _, n := range []int{0, 1, 10, 100, 1000} {
		many := make([]Skill, n)
		for i := range many {
			many[i] = Skill{Name: fmt.Sprintf("skill-%04d", i), Description: strings.Repeat("word ", 200)}
		}
		text := Catalogue(many)
		if len(text) > MaxCatalogue {
			t.Errorf("%d skills: %d bytes", n, len(text))
		}
		for i := range min(n, 500) {
			if !strings.Contains(text, many[i].Name) {
				t.Errorf("%d skills: %s is missing", n, many[i].Name)
				break
			}
		}
		if listed := strings.Count(text, "skill-"); listed < n && !strings.Contains(text, fmt.Sprintf("and %d more", n-listed)) {
			t.Errorf("%d skills: %d listed", n, listed)
		}
	}
}

func FuzzSelect(f *testing.F) {
	f.Add(document("x", "d"))
	f.Add("---\na: &a [*a]\n---")
	f.Fuzz(func(t *testing.T, head string) {
		skills, left := Select([]Found{{"x", head}})
		if len(skills)+len(left) != 1 || len(Catalogue(skills)) > MaxCatalogue {
			t.Errorf("%+v %+v", skills, left)
		}
	})
}
