package render

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/redraw"
)

const (
	// outputLines is the number of lines of the output of a running command that are shown.
	outputLines = 5
	// outputBytes bounds callOutput.text.
	outputBytes = 8 << 10
)

// callOutput is the end of what a running command has printed.
type callOutput struct {
	text string
	// end is the offset after text.
	end uint64
}

// add adds a piece. Pieces may be missing before it, and it may repeat earlier text.
func (o *callOutput) add(p *harnessv1.ToolOutput) {
	text, end := p.GetText(), p.GetOffset()+uint64(len(p.GetText()))
	switch {
	case end <= o.end:
		return
	case p.GetOffset() > o.end:
		o.text = "" // the skipped part may be within a line
	default:
		text = text[o.end-p.GetOffset():]
	}
	o.text += text
	if over := len(o.text) - outputBytes; over > 0 {
		o.text = strings.ToValidUTF8(o.text[over:], "")
	}
	o.end = end
}

// lines returns the last lines, each of at most width columns, as a terminal shows
// them.
func (o *callOutput) lines(s Style, width int) []string {
	lead := "    " + s.bar()
	room := width - ansi.StringWidth(lead)
	all := strings.Split(strings.TrimRight(ansi.Strip(redraw.Text(o.text)), "\r\n"), "\n")
	var lines []string
	for _, line := range all[max(0, len(all)-outputLines):] {
		line = clean(strings.ReplaceAll(strings.TrimRight(line, "\r"), "\t", "    "))
		lines = append(lines, s.dim(lead+ansi.Truncate(line, room, s.mark("…", "..."))))
	}
	if o.text == "" {
		return nil
	}
	return lines
}

// printed adds a piece of output to its call, if that runs.
func (c *calls) printed(p *harnessv1.ToolOutput) {
	if call := c.find(p.GetCallId()); call != nil && call.state == callRuns {
		call.output.add(p)
	}
}
