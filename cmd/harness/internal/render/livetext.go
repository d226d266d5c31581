package render

import (
	"regexp"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/markdown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var sequences = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;:]*m") })

// writing is the text of the model that is being written.
type writing struct {
	stream stream
	// open is what is not shown for good yet.
	open string
	// stands says that blocks of this text went up.
	stands bool
	// rendered is what of was rendered to, kept from frame to frame.
	rendered []string
	of       string
}

// maxOpen bounds what of an open block is rendered in each frame, in bytes. It is
// more than a terminal has lines for.
const maxOpen = 16 << 10

// Delta shows a piece of the model's text as it comes.
func (l *Live) Delta(d *harnessv1.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	restarted, text := l.text.stream.add(d)
	if restarted {
		l.again()
	}
	if text == "" {
		return
	}
	l.plain.heading(d.GetTurnNumber(), 0)
	l.gauge.writes()
	l.say(text)
	l.settle()
}

// say takes in more of the text; blocks that are whole go up.
func (l *Live) say(text string) {
	whole, open := markdown.Split(l.text.open + markdown.Clean(text))
	l.text.open = open
	l.put(whole)
}

// put shows blocks for good.
func (l *Live) put(blocks []string) {
	for _, block := range blocks {
		if lines := l.md.Block(block); len(lines) > 0 {
			l.up(sortText, lines...)
			l.text.stands = true
		}
	}
}

// endText shows for good what is there of the text.
func (l *Live) endText() {
	l.put(markdown.Blocks(l.text.open))
	l.text.open, l.text.stands = "", false
}

// again takes back what was shown of the text. What went up stays there, so it is
// marked.
func (l *Live) again() {
	if l.text.stands {
		s := l.cfg.Style
		l.up(sortText, s.warn(s.mark("↻ ", "")+"the answer starts again: what it says above no longer stands"))
	}
	l.text.open, l.text.stands = "", false
}

// commit takes in the text that stands.
func (l *Live) commit(turn uint32, text string) {
	restarted, rest := l.text.stream.commit(turn, text)
	if restarted {
		l.again()
	}
	l.say(rest)
	l.endText()
	if text != "" {
		l.plain.answer = text
	}
}

// openText are the last lines of the text that is not shown for good yet.
func (l *Live) openText(room int) []string {
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

// tail is the end of a text, from a line on; of a block of code with the line that
// opens it.
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
