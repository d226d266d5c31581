package toolhost

import (
	"fmt"
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	for text, want := range map[string]string{
		"@docs/rules.md\n":                               "sub/docs/rules.md!",
		"See @README.md, and @./a.md.\n":                 "sub/README.md sub/a.md",
		"- @../b.md\r\n":                                 "b.md!",
		"@../../c.md":                                    "-!",
		"@~/.claude/own.md\n@/etc/passwd":                "-! -!",
		"me@example.com, @name, @a@b.md":                 "",
		"`@a.md` and ``@b.md``\n":                        "",
		"```\n@a.md\n```\n@b.md\n~~~sh\n@c.md\n~~~":      "sub/b.md!",
		"    @a.md\n\t@b.md":                             "",
		"(@a.md) **@b.md**":                              "sub/a.md",
		"@with\\ space.md":                               "sub/with space.md!",
		"@a.md @a.md":                                    "sub/a.md",
		"@types/node is a package":                       "sub/types/node",
		strings.Repeat("@a.md\n", 99):                    "sub/a.md!",
		"````\n```\n@a.md\n````\n@b.md":                  "sub/b.md!",
		"@docs/../../../x.md and @docs/../../sub/./d.md": "- sub/d.md",
	} {
		var got []string
		for _, i := range Imports("sub/AGENTS.md", text) {
			shown := i.Path
			if shown == "" {
				shown = "-"
			}
			if i.Alone {
				shown += "!"
			}
			got = append(got, shown)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "@f%d.md\n", i)
	}
	if got := len(Imports("AGENTS.md", many.String())); got != maxImports {
		t.Errorf("%d imports", got)
	}
}
