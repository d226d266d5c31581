package toolhost

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// InstructionNames are the files of standing instructions that are looked for in
// a folder, in this order.
var InstructionNames = []string{"AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"}

const (
	// InstructionBytes is what is shown of one instruction file, with the line that
	// says what was cut.
	InstructionBytes = 32 << 10
	// AllInstructionBytes is what is shown of all of them.
	AllInstructionBytes = 96 << 10
	// MaxInstructions is how many there are at most; those farther away are left out.
	MaxInstructions = 16
	// instructionNote is room for the line that says what was cut, bytes. A path in
	// it is clipped to a third of it.
	instructionNote = 384
)

// FoundInstruction is an instruction file as it was found.
type FoundInstruction struct {
	// Path relative to the workspace.
	Path string
	// The first InstructionBytes of it.
	Head string
	// Bytes of the whole file.
	Size int64
	// SHA-256 of the whole file in lower-case hexadecimal.
	Digest string
}

// Instructions are the files as the model reads them: the same content once,
// where it was found first; blank ones left out; capped, with a line that says
// what was cut.
func Instructions(found []FoundInstruction) []*harnessv1.InstructionFile {
	var files []*harnessv1.InstructionFile
	seen := make(map[string]bool)
	room := AllInstructionBytes - MaxInstructions*instructionNote
	for _, f := range found {
		if len(files) == MaxInstructions {
			break
		}
		if seen[f.Digest] || strings.TrimSpace(f.Head) == "" && f.Size <= int64(len(f.Head)) {
			continue
		}
		seen[f.Digest] = true
		text := instructionText(f, min(room, InstructionBytes-instructionNote))
		room -= min(room, len(text))
		files = append(files, &harnessv1.InstructionFile{Path: Readable(f.Path), Content: text, Digest: f.Digest})
	}
	return files
}

// instructionText is the file's text within limit bytes, and a line behind it
// where that is not all.
func instructionText(f FoundInstruction, limit int) string {
	whole := Readable(f.Head)
	if f.Size <= int64(len(f.Head)) && len(whole) <= limit {
		return whole
	}
	shown := strings.ToValidUTF8(whole[:min(len(whole), limit)], "") // no half of a letter
	if i := strings.LastIndexByte(shown, '\n'); i >= len(shown)/2 {
		shown = shown[:i+1]
	}
	if shown != "" && !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	return shown + fmt.Sprintf("[Cut here: the first %d of the %d bytes of %s are shown.]\n", len(shown), f.Size, Clip(f.Path, instructionNote/3))
}
