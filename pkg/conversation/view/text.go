package view

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Sizes of what placeholders show, in bytes.
const (
	shownHead      = 300 // of an externalised text
	shownLine      = 200 // of the first line of an old message of the user
	shownArguments = 160 // of the arguments of a cleared call
)

// Ref returns the reference of a message for read_artifact.
func Ref(id uint64) string { return fmt.Sprintf("m%d", id) }

// SpanRef returns the reference of the messages from first to last.
func SpanRef(first, last uint64) string {
	if first == last {
		return Ref(first)
	}
	return fmt.Sprintf("m%d-m%d", first, last)
}

// OriginalRef returns what to read instead of a result: the source, if the result is itself
// something that was read back. The reference of a failed read may name nothing.
func OriginalRef(m *harnessv1.Message) string {
	if ref := preserved(m, "ref"); ref != "" && m.GetToolName() == ReadArtifact && !m.GetIsError() {
		return ref
	}
	return Ref(m.GetId())
}

// ReadArtifact is the name of the tool that reads back what a view leaves out.
const ReadArtifact = "read_artifact"

// clearedText returns the line that a cleared result is replaced by.
func clearedText(m *harnessv1.Message, call *harnessv1.ToolCall) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Cleared: the result of %s", m.GetToolName())
	if arguments := content.Line(content.Text(call.GetArguments()), shownArguments); arguments != "" {
		b.WriteString(" " + arguments)
	}
	if m.GetIsError() {
		b.WriteString(", an error")
	}
	for _, f := range m.GetPreserved() {
		if f.GetName() != "ref" {
			fmt.Fprintf(&b, "; %s: %s", f.GetName(), f.GetValue())
		}
	}
	fmt.Fprintf(&b, ". Read it with %s, ref %s.]", ReadArtifact, OriginalRef(m))
	return b.String()
}

// replacedText returns the line that replaced guidance is shown as.
func replacedText(m *harnessv1.Message) string {
	return fmt.Sprintf("[Cleared: guidance that later guidance replaces, ref %s.]", Ref(m.GetId()))
}

// briefText returns the beginning of a text and how to read all of it. c may be a blob.
func briefText(c *harnessv1.Content, ref string, limit int) string {
	head := strings.TrimSpace(content.Cut(strings.ToValidUTF8(content.Text(c), "\uFFFD"), limit))
	return fmt.Sprintf("%s\n[Only the beginning is shown, %d of %d bytes. Read all of it with %s, ref %s.]", head, len(head), size(c), ReadArtifact, ref)
}

// firstLine returns the first line of a text and how to read all of it.
func firstLine(c *harnessv1.Content, ref string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(content.Text(c), "\uFFFD")), "\n")
	return fmt.Sprintf("%s\n[Only the first line is shown. Read all of it with %s, ref %s.]", content.Cut(line, shownLine), ReadArtifact, ref)
}

// mediaText returns the line that an image or a document is replaced by.
func mediaText(m *harnessv1.Media, ref string) string {
	bytes := m.GetBlob().GetSize() + uint64(len(m.GetData()))
	name := m.GetName()
	if name != "" {
		name = " " + name
	}
	return fmt.Sprintf("[Cleared: %s%s, %d bytes. See it again with %s, ref %s.]", m.GetType(), name, bytes, ReadArtifact, ref)
}
