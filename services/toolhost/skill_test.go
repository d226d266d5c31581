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
		"---\n" + strings.Repeat("a: b\n", 9000) + "---\n": "|||the front matter of its SKILL.md has more than 16384 bytes",

		"---\nname: my-skill\ndescription: Configure the harness: Hooks, MCP Servers, Skills\n---\nBODY": "my-skill|Configure the harness: Hooks, MCP Servers, Skills|BODY|",
		"---\nname: pdf\ndescription: Use when: it is late.\n  Or early: also.\n---\nBODY":               "pdf|Use when: it is late. Or early: also.|BODY|",
		"---\nname: pdf\ndescription: >\n  Reads: PDFs\n  and more\nargument-hint: a: b\n---\nBODY":      "pdf|Reads: PDFs and more|BODY|",
		"---\nname: pdf\ndescription: [draft] Reads PDFs\n---\nBODY":                                     "pdf|[draft] Reads PDFs|BODY|",
		"---\nname: pdf\ndescription: @docs and `code`\n---\nBODY":                                       "pdf|@docs and `code`|BODY|",
		"---\nname: pdf\ndescription: \"Reads: PDFs\"\nother: a: b\n---\nBODY":                           "pdf|Reads: PDFs|BODY|",
		"---\nname: pdf\ndescription: Reads.\nname: again\n---\nBODY":                                    "pdf|Reads.|BODY|",
		"---\nname: pdf\ndescription: Reads.\n\n# How\nText":                                             "pdf|Reads.|# How\nText|",
		"---\nname: pdf\ndescription: Reads.\n\n# How\nText\n\n---\nmore":                                "pdf|Reads.|# How\nText\n\n---\nmore|",
		"---\nname: pdf\ndescription: Reads.":                                                            "pdf|Reads.||",
		"---\nname: pdf\ndescription: Reads.\n...\nText":                                                 "pdf|Reads.|Text|",
		"\ufeff---\r\nname:\tpdf\r\ndescription:\tReads.\r\n---\r\nText\r\n":                             "pdf|Reads.|Text|",
		"---\rname: pdf\rdescription: Reads.\r---\rText":                                                 "pdf|Reads.|Text|",
		"\n\n--- \nname: pdf\ndescription: Reads.\n---  \nText":                                          "pdf|Reads.|Text|",
		"---\nname: pdf\ndescription: Reads.\nmetadata:\n\tauthor: me\n---\nText":                        "pdf|Reads.|Text|",
		"name: pdf\ndescription: Reads.\n---\nText":                                                      "pdf|Reads.|Text|",
		"name: pdf\ndescription: Reads.\n\nText":                                                         "pdf|Reads.|Text|",
		"---\nname: pdf\n# a comment\ndescription: a: b\n---\nText":                                      "pdf|a: b|Text|",
		"---\nname: pdf\n---\n\n---\nText":                                                               "|||it has no description",
		"Note: text\n":                                                                                   "|||its SKILL.md has no front matter",
		"---\n- a\nx: [\n---\n":                                                                          "|||its front matter is not YAML (",
		"---\nname: My Skill\ndescription: x\n---":                                                       "|||its name must match",
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
