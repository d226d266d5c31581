package toolhost

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// InstructionNames are the names of instruction files in a folder, in order of precedence.
var InstructionNames = []string{"AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"}

const (
	// InstructionBytes is the maximum size of one instruction file's text, including the
	// line about the cut.
	InstructionBytes = 32 << 10
	// allInstructionBytes is the maximum size of the text of all instruction files.
	allInstructionBytes = 96 << 10
	// maxInstructions is the maximum number of instruction files. The farthest ones are
	// left out.
	maxInstructions = 16
	// instructionNoteBytes is reserved for the line about the cut. A path in it is clipped
	// to a third of that.
	instructionNoteBytes = 384
	// maxNotes bounds the lines about imports of a file.
	maxNotes = 8
)

// FoundInstruction is an instruction file in the file system.
type FoundInstruction struct {
	// Path relative to the workspace.
	Path string
	// Head has the first InstructionBytes of the file.
	Head string
	// Size of the whole file in bytes.
	Size int64
	// Digest is the SHA-256 of the whole file in lower-case hexadecimal.
	Digest string
	// Notes are lines about its imports that are not read.
	Notes []string
}

// Instructions returns the files as the model reads them. Of files with the same content
// only the first is kept, and blank files are left out. A file that is too long is cut
// and gets a line about it.
func Instructions(found []FoundInstruction) []*harnessv1.InstructionFile {
	var files []*harnessv1.InstructionFile
	seen := make(map[string]bool)
	room := allInstructionBytes - maxInstructions*instructionNoteBytes
	for _, f := range found {
		if len(files) == maxInstructions {
			break
		}
		if seen[f.Digest] || strings.TrimSpace(f.Head) == "" && f.Size <= int64(len(f.Head)) {
			continue
		}
		seen[f.Digest] = true
		text := instructionText(f, min(room, InstructionBytes-instructionNoteBytes))
		for _, note := range f.Notes[:min(len(f.Notes), maxNotes)] {
			text = AppendLine(text, note) + "\n"
		}
		room -= min(room, len(text))
		files = append(files, &harnessv1.InstructionFile{Path: Readable(f.Path), Content: text, Digest: f.Digest})
	}
	return files
}

// instructionText returns the file's text, at most limit bytes, followed by a line about the
// cut.
func instructionText(f FoundInstruction, limit int) string {
	whole := Readable(f.Head)
	if f.Size <= int64(len(f.Head)) && len(whole) <= limit {
		return whole
	}
	shown := strings.ToValidUTF8(whole[:min(len(whole), limit)], "") // no part of a character
	if i := strings.LastIndexByte(shown, '\n'); i >= len(shown)/2 {
		shown = shown[:i+1]
	}
	if shown != "" && !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	return shown + fmt.Sprintf("[Cut here: the first %d of the %d bytes of %s are shown.]\n", len(shown), f.Size, Clip(f.Path, instructionNoteBytes/3))
}
