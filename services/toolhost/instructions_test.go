package toolhost

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func instruction(path, content string) FoundInstruction {
	return FoundInstruction{
		Path: path, Head: content[:min(len(content), InstructionBytes)], Size: int64(len(content)), Digest: fmt.Sprintf("%x", content),
	}
}

func TestInstructionsKeepsTheFirstOfEqualFiles(t *testing.T) {
	files := Instructions([]FoundInstruction{
		instruction("AGENTS.md", "one\n"), instruction("CLAUDE.md", " \n\t"), instruction("../AGENTS.md", "one\n"),
		instruction("../CLAUDE.md", "two\n"), instruction("../../CLAUDE.md", "two\n"),
	})
	if len(files) != 2 || files[0].GetPath() != "AGENTS.md" || files[0].GetContent() != "one\n" || files[1].GetPath() != "../CLAUDE.md" {
		t.Fatalf("got %v", files)
	}
}

func TestInstructionsAreCutWithANote(t *testing.T) {
	line := "ä line of instructions\n"
	var found []FoundInstruction
	for i := range 30 {
		found = append(found, instruction(fmt.Sprintf("%sAGENTS.md", strings.Repeat("../", i)), fmt.Sprint(i)+strings.Repeat(line, 2000)))
	}
	files := Instructions(found)
	if len(files) != maxInstructions {
		t.Fatalf("%d files", len(files))
	}
	all := 0
	for i, f := range files {
		all += len(f.GetContent())
		if len(f.GetContent()) > InstructionBytes || !utf8.ValidString(f.GetContent()) || f.GetDigest() != found[i].Digest {
			t.Errorf("%s: %d bytes", f.GetPath(), len(f.GetContent()))
		}
		if note := fmt.Sprintf("of the %d bytes of ", found[i].Size); !strings.Contains(f.GetContent(), note) {
			t.Errorf("%s does not say %q: …%q", f.GetPath(), note, f.GetContent()[max(0, len(f.GetContent())-100):])
		}
	}
	if all > allInstructionBytes || all < allInstructionBytes*8/10 {
		t.Errorf("%d bytes in all", all)
	}
	if first := files[0].GetContent(); !strings.Contains(first, "instructions\n[Cut here: the first ") {
		t.Errorf("not cut at a line: %q", first[len(first)-200:])
	}
}

func TestInstructionsWithInvalidBytesAreReadable(t *testing.T) {
	files := Instructions([]FoundInstruction{
		instruction("AGENTS.md", strings.Repeat("\x00", 40_000)), instruction("CLAUDE.md", "a\xffb"),
	})
	if len(files) != 2 || len(files[0].GetContent()) > InstructionBytes || files[1].GetContent() != "a\uFFFDb" {
		t.Fatalf("got %d files, %d bytes", len(files), len(files[0].GetContent()))
	}
	if !utf8.ValidString(files[0].GetContent()) || strings.ContainsRune(files[0].GetContent(), 0) {
		t.Error("not readable")
	}
}
