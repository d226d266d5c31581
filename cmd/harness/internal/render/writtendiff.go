package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// shownChange is the number of lines of a change that are shown.
	shownChange = 12
	// contextLines is the number of unchanged lines around a change.
	contextLines = 2
)

// writes reports whether a tool changes a file, so that its arguments are a change.
func writes(tool string) bool { return tool == "write_file" || tool == "edit_file" }

// changeLines returns what a call of write_file or edit_file has changed, as its arguments
// show it: the lines that it replaced, and those that it wrote. There are none for other tools
// and for arguments that are no such call.
func (s Style) changeLines(tool, arguments string, width int) []string {
	var a struct {
		Content string `json:"content"`
		Old     string `json:"old"`
		New     string `json:"new"`
	}
	if !writes(tool) || json.Unmarshal([]byte(arguments), &a) != nil {
		return nil
	}
	if tool == "write_file" {
		a.Old, a.New = "", a.Content
	}
	change := lineChange(splitLines(a.Old), splitLines(a.New))
	var lines []string
	show := func(paint func(string) string, mark, line string) {
		line = "    " + mark + " " + clean(strings.ReplaceAll(line, "\t", "    "))
		lines = append(lines, paint(ansi.Truncate(line, width, s.mark("…", "..."))))
	}
	for i, c := range change {
		if i == shownChange-1 && len(change) > shownChange {
			return append(lines, s.dim(fmt.Sprintf("    %s %d more lines", s.mark("…", "..."), len(change)-i)))
		}
		switch c[0] {
		case '-':
			show(s.bad, "-", c[1:])
		case '+':
			show(s.good, "+", c[1:])
		default:
			show(s.dim, " ", c[1:])
		}
	}
	return lines
}

// lineChange returns the lines of a change, each after ' ', '-' or '+': the removed lines, then
// the added ones, between the lines that both have.
func lineChange(old, changed []string) []string {
	from := 0
	for from < len(old) && from < len(changed) && old[from] == changed[from] {
		from++
	}
	same := 0
	for same < len(old)-from && same < len(changed)-from && old[len(old)-1-same] == changed[len(changed)-1-same] {
		same++
	}
	var lines []string
	add := func(mark string, some []string) {
		for _, line := range some {
			lines = append(lines, mark+line)
		}
	}
	add(" ", old[max(0, from-contextLines):from])
	add("-", old[from:len(old)-same])
	add("+", changed[from:len(changed)-same])
	add(" ", old[len(old)-same:min(len(old), len(old)-same+contextLines)])
	return lines
}

// splitLines returns the lines of a text, without their breaks.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// argumentsOf returns the whole arguments of a call that writes, empty for other calls.
func argumentsOf(c *shownCall, fetch func(*harnessv1.Content) string) string {
	if c == nil || !writes(c.tool) || c.arguments == nil {
		return ""
	}
	return fetch(c.arguments)
}
