package toolhostserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportsOfInstructionFiles: files of the repository are read once, in order and up to five deep. Other paths are named.
func TestImportsOfInstructionFiles(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write("secret.md", "secret\n")
	for name, content := range map[string]string{
		".git/HEAD": "", ".git/config": "[remote]\n\turl = https://token@host\n",
		"AGENTS.md":        "@docs/rules.md\n@../secret.md\n@.git/config\n@docs/gone.md\n@docs/link.md\n@docs/binary.md\nAsk @someone, use @types/node.\n",
		"CLAUDE.md":        "@AGENTS.md\nmore\n",
		"docs/rules.md":    "rules, see @deep/1.md\n",
		"docs/deep/1.md":   "one\n@2.md\n@../rules.md\n@../../AGENTS.md\n",
		"docs/deep/2.md":   "two\n@3.md\n",
		"docs/deep/3.md":   "three\n@4.md\n",
		"docs/deep/4.md":   "four\n@5.md\n",
		"docs/deep/5.md":   "five\n@1.md\n",
		"docs/binary.md":   "a\x00b",
		"here/CLAUDE.md":   "here\n@../docs/deep/2.md\n@/etc/passwd\n",
		"docs/inside.md":   "inside\n",
		"docs/unnamed.txt": "unnamed\n",
	} {
		h.write("repo/"+name, content)
	}
	if err := os.Symlink("../../secret.md", filepath.Join(h.dir, "repo/docs/link.md")); err != nil {
		t.Fatal(err)
	}
	h.dir = filepath.Join(h.dir, "repo/here")
	h.checkInstructions(
		"CLAUDE.md", "here\n@../docs/deep/2.md\n@/etc/passwd\n[@/etc/passwd is not read: it is outside of the repository.]\n",
		"../AGENTS.md", "@docs/rules.md\n@../secret.md\n@.git/config\n@docs/gone.md\n@docs/link.md\n@docs/binary.md\nAsk @someone, use @types/node.\n"+
			"[@../secret.md is not read: it is outside of the repository.]\n[@.git/config is not read: it cannot be read: it must be a text in the repository, and not too large.]\n"+
			"[@docs/gone.md is not read: there is no such file.]\n[@docs/link.md is not read: it cannot be read: it must be a text in the repository, and not too large.]\n"+
			"[@docs/binary.md is not read: it cannot be read: it must be a text in the repository, and not too large.]\n",
		"../CLAUDE.md", "@AGENTS.md\nmore\n",
		"../docs/deep/2.md", "two\n@3.md\n", "../docs/deep/3.md", "three\n@4.md\n", "../docs/deep/4.md", "four\n@5.md\n",
		"../docs/deep/5.md", "five\n@1.md\n", "../docs/deep/1.md", "one\n@2.md\n@../rules.md\n@../../AGENTS.md\n[@../rules.md is not read: imports are followed 5 files deep.]\n",
		"../docs/rules.md", "rules, see @deep/1.md\n")
}

func TestManyImportsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	var list strings.Builder
	for i := range 40 {
		fmt.Fprintf(&list, "@f%d.md\n", i)
		h.write(fmt.Sprintf("f%d.md", i), fmt.Sprintf("%d\n", i)+strings.Repeat("@f39.md\n", 1000))
	}
	h.write("AGENTS.md", list.String())
	if got := h.describe().GetInstructionFiles(); len(got) != 16 || got[15].GetPath() != "f13.md" {
		t.Errorf("%d files", len(got))
	}
}
