package follow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Screen is the terminal that prompts are on.
type Screen struct {
	// Style returns the style of the terminal as it is now.
	Style func() render.Style
	// Rows returns its height, 0 if that is unknown; may be nil.
	Rows func() int
	// Page shows a text in the user's pager and returns when that has ended; may be nil.
	Page func(text string) error
	// Edit opens a text in the user's editor, a command if it is one, otherwise JSON, and
	// returns it when the editor has ended; may be nil.
	Edit func(text string, command bool) (string, error)
}

// Prompt prompts a user at a terminal.
type Prompt struct {
	in     io.Reader
	out    io.Writer
	screen Screen
	clean  func(string) string

	once  sync.Once
	lines chan string
	// want has a value for each line that may be read. While a pager is open none is read,
	// because both would read from one terminal.
	want   chan struct{}
	wanted bool
}

// NewPrompt writes prompts to out, which is the screen, and reads lines from in.
func NewPrompt(in io.Reader, out io.Writer, screen Screen) *Prompt {
	return &Prompt{in: in, out: out, screen: screen, clean: render.Clean, lines: make(chan string), want: make(chan struct{}, 1)}
}

// read returns the channel of the lines, and starts to read the next one unless that is being
// read. A read from a terminal cannot be cancelled, so the goroutine lives as long as the
// process.
func (p *Prompt) read() <-chan string {
	p.once.Do(func() {
		go func() {
			defer close(p.lines)
			scan := bufio.NewScanner(p.in)
			for range p.want {
				if !scan.Scan() {
					return
				}
				p.lines <- scan.Text()
			}
		}()
	})
	if !p.wanted {
		p.wanted = true
		p.want <- struct{}{}
	}
	return p.lines
}

// received reports that a line was received from the channel of read.
func (p *Prompt) received() { p.wanted = false }

// rows returns the height of the screen.
func (p *Prompt) rows() int {
	if p.screen.Rows != nil {
		if rows := p.screen.Rows(); rows > 0 {
			return rows
		}
	}
	return 24
}

// page shows a text in the pager.
func (p *Prompt) page(text string) error {
	if p.screen.Page == nil {
		return errors.New("there is no pager here")
	}
	return p.screen.Page(text)
}

func (p *Prompt) print(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// indented writes foreign text line by line.
func (p *Prompt) indented(text string) {
	for line := range strings.Lines(p.clean(text)) {
		p.print("  %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// style returns the style of a call, which is indented.
func (p *Prompt) style() render.Style {
	s := p.screen.Style()
	if s.Width == 0 {
		s.Width = 80
	}
	s.Width = max(s.Width-2, 1)
	return s
}

// question shows a question of the agent or of its contract; asker names the sub-agent whose
// it is, empty for that of the run itself.
func (p *Prompt) question(call *harnessv1.PendingCall, asker string) {
	text, options := render.Question(call)
	who := "The agent"
	_, contract := runstate.QuestionOf(call)
	switch {
	case contract && asker != "":
		who = "The contract of " + p.clean(asker)
	case contract:
		who = "The contract"
	case asker != "":
		who = "The " + p.clean(asker)
	}
	p.print("\n%s asks:\n", who)
	p.indented(text)
	for i, option := range options {
		p.print("  [%d] %s\n", i+1, render.Short(option, 300))
	}
	if len(options) > 0 {
		p.print("Your answer, a number or text (Enter to skip): ")
		return
	}
	p.print("Your answer (Enter to skip): ")
}

// Chosen returns the answer that a line gives to a question: the option with that
// number, otherwise the line itself; empty if the user leaves the question open.
func Chosen(line string, options []string) string {
	line = strings.TrimSpace(line)
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return options[n-1]
	}
	return line
}
