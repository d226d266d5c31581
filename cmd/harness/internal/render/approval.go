package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// tab is what a tab in a call is printed as: terminals have other tab stops at its place.
const tab = "    "

// CallLines returns all of a call that a person decides about: how its command is run, the
// command and other texts of several lines without escapes, each line after a gutter, and the
// other arguments. Nothing is left out, and control characters are replaced by their numbers. Lines
// are broken at Width.
func (s Style) CallLines(p *harnessv1.PendingCall) []string {
	lines := s.texts(p)
	if parts := p.GetPreview().GetDisguised(); len(parts) > 0 {
		lines = append(lines, s.wrap("It has characters that are not seen or look like others: "+content.Visible(strings.Join(parts, "  ")), 0, 2)...)
	}
	return lines
}

func (s Style) texts(p *harnessv1.PendingCall) []string {
	var lines []string
	if c := p.GetPreview().GetCommand(); c != nil {
		lines = append(lines, s.wrap(s.commandPlace(c), 0, 2)...)
	}
	if blob := p.GetArguments().GetBlob(); blob != nil {
		lines = append(lines, s.gutter(blob.GetPreview())...)
		return append(lines, fmt.Sprintf("only the first %d of %d bytes are here; blob %s has them all", len(blob.GetPreview()), blob.GetSize(), content.Visible(blob.GetDigest())))
	}
	if files := p.GetPreview().GetFiles(); len(files) > 0 {
		for _, f := range files {
			lines = append(lines, s.fileLines(f)...)
		}
		return lines
	}
	if note := p.GetPreview().GetNote(); note != "" {
		lines = append(lines, s.wrap(content.Visible(note), 0, 2)...)
	}
	fields := fieldsOf(p.GetArguments().GetInline())
	if fields == nil {
		return append(lines, s.gutter(p.GetArguments().GetInline())...)
	}
	for _, f := range fields {
		switch {
		case f.name == "command" && f.text && p.GetPreview().GetCommand() != nil:
			lines = append(lines, s.gutter(f.value)...)
		case strings.Contains(f.value, "\n"):
			lines = append(append(lines, content.Visible(f.name)+":"), s.gutter(f.value)...)
		default:
			lines = append(lines, s.hard(content.Visible(f.name)+": "+content.Visible(f.value), "", s.continued())...)
		}
	}
	return lines
}

// fileLines returns what a call changes in a file.
func (s Style) fileLines(f *harnessv1.FilePreview) []string {
	name := content.Visible(f.GetPath())
	switch {
	case f.GetBefore() == "":
		name += " (new)"
	case len(f.GetDiff().GetInline()) == 0 && f.GetDiff().GetBlob() == nil:
		name += " (stays as before)"
	}
	lines := s.hard(name, "", s.continued())
	if blob := f.GetDiff().GetBlob(); blob != nil {
		lines = append(lines, s.gutter(blob.GetPreview())...)
		return append(lines, fmt.Sprintf("only the first %d of %d bytes of the diff are here; blob %s has them all", len(blob.GetPreview()), blob.GetSize(), content.Visible(blob.GetDigest())))
	}
	if f.GetDiff().GetInline() == "" {
		return lines
	}
	return append(lines, s.gutter(f.GetDiff().GetInline())...)
}

// WholeCall reports whether CallLines has all of a call.
func WholeCall(p *harnessv1.PendingCall) bool {
	for _, f := range p.GetPreview().GetFiles() {
		if f.GetDiff().GetBlob() != nil {
			return false
		}
	}
	return p.GetArguments().GetBlob() == nil
}

// Granted returns what an approval with rules allows for the rest of a run; without rules all
// calls of the tool.
func Granted(tool string, rules []*harnessv1.ToolRule) string {
	if len(rules) == 0 {
		return "all calls of " + content.Visible(tool)
	}
	var prefixes, exact, paths, hosts []string
	for _, r := range rules {
		if r.GetPrefix() != "" {
			prefixes = append(prefixes, "`"+content.Visible(r.GetPrefix())+"`")
		} else if r.GetCommand() != "" {
			exact = append(exact, "`"+content.Visible(r.GetCommand())+"`")
		} else if r.GetHost() != "" {
			hosts = append(hosts, content.Visible(r.GetHost()))
		} else {
			paths = append(paths, content.Visible(r.GetPath()))
		}
	}
	var parts []string
	if len(prefixes) > 0 {
		parts = append(parts, "commands that begin with "+strings.Join(prefixes, " or "))
	}
	if len(exact) > 0 {
		parts = append(parts, "exactly "+strings.Join(exact, " or "))
	}
	if len(paths) > 0 {
		parts = append(parts, content.Visible(tool)+" in "+strings.Join(paths, " or "))
	}
	if len(hosts) > 0 {
		parts = append(parts, "reading from "+strings.Join(hosts, " or "))
	}
	return strings.Join(parts, ", ")
}

// exactly precedes a command line in a rule for this line alone.
const exactly = "exactly "

// Rule returns a rule as a user writes it: first words of commands, exactly and a command line, a
// pattern for paths, or a host.
func Rule(r *harnessv1.ToolRule) string {
	if r.GetCommand() != "" {
		return exactly + r.GetCommand()
	}
	return cmp.Or(r.GetPrefix(), r.GetPath(), r.GetHost())
}

// ExactCommand returns the command line of a rule that a user has written for this line alone.
func ExactCommand(text string) (command string, exact bool) {
	command, exact = strings.CutPrefix(text, exactly)
	return strings.TrimSpace(command), exact
}

// commandPlace returns where and how a command is run.
func (s Style) commandPlace(c *harnessv1.CommandPreview) string {
	level := strings.ToLower(strings.TrimPrefix(c.GetLevel().String(), "SANDBOX_LEVEL_"))
	network := strings.ToLower(strings.TrimPrefix(c.GetNetwork().String(), "SANDBOX_NETWORK_MODE_"))
	if len(c.GetHosts()) > 0 {
		network = strings.Join(c.GetHosts(), ", ")
	}
	return "in " + content.Visible(c.GetDirectory()) + s.dot() + "sandbox " + level + s.dot() + "network " + content.Visible(network)
}

// gutter returns a text line by line, each after a mark that no text of a model can remove.
func (s Style) gutter(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		lines = append(lines, s.hard(content.Visible(line), s.mark("│ ", "| "), s.continued())...)
	}
	return lines
}

// continued is the mark of the rest of a line that was broken.
func (s Style) continued() string { return s.mark("┆ ", ": ") }

// hard breaks a line at Width wherever that is, so that each line of the screen has a mark.
func (s Style) hard(line, first, rest string) []string {
	line = strings.ReplaceAll(line, "\t", tab)
	if s.Width <= len(rest)+1 {
		return []string{first + line}
	}
	parts := strings.Split(ansi.Hardwrap(line, s.Width-2, true), "\n")
	for i := range parts {
		if i == 0 {
			parts[i] = first + parts[i]
		} else {
			parts[i] = rest + parts[i]
		}
	}
	return parts
}

// argument is one of the arguments of a call.
type argument struct {
	name, value string
	// text: the value is a text, not another value of JSON.
	text bool
}

// fieldsOf returns the arguments of a call in their order; nil if they are no JSON object
// that is read in one way only.
func fieldsOf(arguments string) []argument {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	fields, seen := []argument{}, map[string]bool{}
	for decoder.More() {
		name, err := decoder.Token()
		var raw json.RawMessage
		if err != nil || decoder.Decode(&raw) != nil || seen[fmt.Sprint(name)] {
			return nil
		}
		seen[fmt.Sprint(name)] = true
		f := argument{name: fmt.Sprint(name), value: string(raw)}
		if json.Unmarshal(raw, &f.value) == nil && bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) {
			f.text = true
		} else {
			f.value = string(raw)
		}
		fields = append(fields, f)
	}
	if _, err := decoder.Token(); err != nil || decoder.More() {
		return nil
	}
	return fields
}
