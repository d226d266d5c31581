package toolhost_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

func TestParseSkill(t *testing.T) {
	for given, want := range map[string]string{
		"---\nname: pdf\ndescription: Reads PDFs.\n---\n# How\n":                "pdf|Reads PDFs.|# How|",
		"---\r\nname: pdf\r\ndescription: Reads PDFs.\r\n---\r\nText":           "pdf|Reads PDFs.|Text|",
		"---\ndescription: >\n  Reads\n  PDFs.\nallowed-tools: Bash\n---\nText": "folder|Reads PDFs.|Text|",
		"---\nname: pdf\ndescription: Reads\u200b PDFs.\n---":                   "pdf|Reads PDFs.||",
		"# How\n":                                          "|||its SKILL.md has no front matter",
		"---\nname: pdf\n---\n":                            "|||it has no description",
		"---\nname: a b\ndescription: x\n---\n":            "|||its name must match",
		"---\nname: [\n---\n":                              "|||its front matter is not YAML",
		"---\n" + strings.Repeat("a: b\n", 9000) + "---\n": "|||its SKILL.md has no front matter",
	} {
		name, description, body, err := toolhost.ParseSkill("folder", given)
		got := name + "|" + description + "|" + body + "|"
		if err != nil {
			got += err.Error()
		}
		if !strings.HasPrefix(got, want) || err == nil && got != want {
			t.Errorf("%.40q: %s, want %s", given, got, want)
		}
	}
}
