package render

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/redraw"
)

const (
	// shownFailure is the number of the last lines of a failed command that are shown.
	shownFailure = 6
	// failureBytes bounds the end of an error that is read for them.
	failureBytes = 16 << 10
	// runCommand is the tool that runs commands.
	runCommand = "run_command"
)

// failure returns the error of a call for people: the text on its line, and the lines below it.
// Of a command it is how it ended and the last lines that it printed, because they have the
// error; of another tool it is the first line. The note about changes of the user is left out.
func failure(tool, text string) (head string, last []string) {
	text = approval.Result(text)
	if tool != runCommand {
		return firstLine(text), nil
	}
	if over := len(text) - failureBytes; over > 0 {
		text = text[over:]
		_, text, _ = strings.Cut(text, "\n")
	}
	lines := printedLines(text)
	if n := len(lines) - 1; n >= 0 {
		if note, found := strings.CutPrefix(lines[n], "["); found && strings.HasSuffix(note, "]") {
			head, lines = strings.TrimSuffix(note, "]"), lines[:n]
		}
	}
	switch lines = lines[max(0, len(lines)-shownFailure):]; {
	case len(lines) == 1 && head == "":
		return strings.TrimSpace(lines[0]), nil
	case len(lines) == 1:
		return head + ": " + strings.TrimSpace(lines[0]), nil
	}
	return cmp.Or(head, "failed"), lines
}

// printedLines returns the lines of an output that are not blank, as a terminal shows them.
func printedLines(text string) []string {
	var lines []string
	for line := range strings.Lines(ansi.Strip(redraw.Text(text))) {
		if line = strings.TrimRight(line, "\r\n\t "); strings.TrimSpace(line) != "" {
			lines = append(lines, strings.ReplaceAll(line, "\t", "    "))
		}
	}
	return lines
}

// failureLines returns the last lines of a failed command, each of at most width columns; 0 is for
// a file or pipe.
func (s Style) failureLines(last []string, width int) []string {
	lead := "    " + s.bar()
	var lines []string
	for _, line := range last {
		room := shownLine
		if width > 0 {
			room = width - ansi.StringWidth(lead)
		}
		lines = append(lines, s.bad(lead+ansi.Truncate(clean(line), room, s.mark("…", "..."))))
	}
	return lines
}

// shownLine bounds a line of an output that is shown, in columns.
const shownLine = 300

// pathOf returns the path of a call that writes a file; empty for other calls.
func pathOf(tool string, arguments *harnessv1.Content) string {
	var a struct {
		Path string `json:"path"`
	}
	if !writes(tool) || json.Unmarshal([]byte(preview(arguments)), &a) != nil {
		return ""
	}
	return clean(a.Path)
}

// silent reports whether the result of a tool tells people nothing: its call shows what it did.
func silent(tool string) bool { return tool == "work_complete" || tool == "task_complete" }

// ResultOf returns how a call ended, in at most a few lines: of an error what people are shown of it
// while the run works, otherwise the first line.
func (s Style) ResultOf(tool, text string, failed bool) []string {
	if !failed {
		return []string{shorten(firstLine(approval.Result(text)), shownLine)}
	}
	head, last := failure(tool, text)
	lines := []string{s.bad(shorten(head, shownLine))}
	for _, line := range last {
		lines = append(lines, s.bad(s.bar()+ansi.Truncate(clean(line), shownLine, s.mark("…", "..."))))
	}
	return lines
}
