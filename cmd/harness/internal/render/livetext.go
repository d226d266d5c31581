package render

import (
	"regexp"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/markdown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var sequences = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;:]*m") })

// openText is the text that the model is writing.
type openText struct {
	// open is the part that has not gone up.
	open string
	// above reports whether blocks of this text have gone up.
	above bool
	// rendered is the text of as lines, kept from frame to frame.
	rendered []string
	of       string
}

// maxOpen bounds the part of an open block that is rendered in each frame, in bytes.
// It is more than fits on a terminal.
const maxOpen = 16 << 10

// Delta shows a piece of the model's text and of its reasoning, an alert, or a piece of the
// output of a command.
func (l *Live) Delta(d *harnessv1.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if out := d.GetToolOutput(); out != nil {
		l.calls.printed(out)
		return
	}
	if d.GetAlert() != nil {
		l.alert(d)
		return
	}
	next := l.current.add(d)
	l.drop(next)
	if l.cfg.Still {
		next.reasoning = ""
	}
	if next.text == "" && next.reasoning == "" {
		return
	}
	l.plain.heading(d.GetTurnNumber(), 0)
	l.gauge.writes(next.text != "")
	l.show(next)
	l.drawIfIdle()
}

// show adds to the reasoning and to the text. Each ends where the other continues.
func (l *Live) show(next addition) {
	if next.reasoning != "" {
		l.put(markdown.Blocks(l.text.open))
		l.text.open = ""
		l.thought.add(next.reasoning)
	}
	if next.text != "" {
		l.endThought()
		l.write(next.text)
	}
}

// drop removes the reasoning and the text that an addition makes void.
func (l *Live) drop(next addition) {
	if next.voidReasoning {
		l.thought.open = ""
	}
	if next.voidText {
		l.again()
	}
}

// write adds to the text. Whole blocks go up.
func (l *Live) write(text string) {
	whole, open := markdown.Split(l.text.open + markdown.Clean(text))
	l.text.open = open
	l.put(whole)
}

// put sends blocks up.
func (l *Live) put(blocks []string) {
	for _, block := range blocks {
		if lines := l.md.Block(block); len(lines) > 0 {
			l.up(sortText, lines...)
			l.text.above = true
		}
	}
}

// endText sends up the rest of the text.
func (l *Live) endText() {
	l.put(markdown.Blocks(l.text.open))
	l.text.open, l.text.above = "", false
}

// again drops the text. Blocks that have gone up stay on the terminal, and are marked
// as void.
func (l *Live) again() {
	if l.text.above {
		s := l.cfg.Style
		l.up(sortText, s.warn(s.mark("↻ ", "")+"the answer starts again: ignore its text above"))
	}
	l.text.open, l.text.above = "", false
}

// commit takes the committed text and reasoning. A line reports the tokens of reasoning
// that is not shown.
func (l *Live) commit(turn uint32, text, reasoning string, tokens uint64) {
	silent := tokens > 0 && reasoning == "" && (l.cfg.Still || !l.current.spoke(turn))
	next := l.current.commit(turn, text, reasoning)
	l.drop(next)
	if silent {
		l.up(sortLine, l.cfg.Style.thought([]string{thoughtFor(tokens)})...)
	}
	l.show(next)
	l.endAnswer()
	if text != "" {
		l.plain.answer = text
	}
}

// endAnswer sends up the rest of the reasoning and of the text.
func (l *Live) endAnswer() {
	l.endThought()
	l.endText()
}

// openLines returns the last lines of the part that has not gone up.
func (l *Live) openLines(room int) []string {
	if l.text.open == "" || room <= 0 {
		return nil
	}
	if l.text.rendered == nil || l.text.of != l.text.open {
		l.text.of, l.text.rendered = l.text.open, l.md.Render(tail(l.text.open))
	}
	lines := l.text.rendered
	if len(lines) > room {
		lines = lines[len(lines)-room:]
	}
	return lines
}

// tail returns the end of a text, from the start of a line; for a block of code with
// its opening line.
func tail(text string) string {
	if len(text) <= maxOpen {
		return text
	}
	opening, _, _ := strings.Cut(text, "\n")
	end := text[len(text)-maxOpen:]
	if at := strings.IndexByte(end, '\n'); at >= 0 {
		end = end[at+1:]
	}
	end = strings.ToValidUTF8(end, "")
	if strings.HasPrefix(opening, "```") || strings.HasPrefix(opening, "~~~") {
		return opening + "\n" + end
	}
	return end
}
