package follow

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Prompt asks a person at a terminal.
type Prompt struct {
	in    io.Reader
	out   io.Writer
	clean func(string) string

	once  sync.Once
	lines chan string
}

// NewPrompt asks on out and reads lines from in. clean makes text that others
// wrote safe for the terminal.
func NewPrompt(in io.Reader, out io.Writer, clean func(string) string) *Prompt {
	return &Prompt{in: in, out: out, clean: clean, lines: make(chan string)}
}

// read starts to read lines, at the first question. A read from a terminal
// cannot be broken off, so the goroutine lives as long as the process.
func (p *Prompt) read() <-chan string {
	p.once.Do(func() {
		go func() {
			defer close(p.lines)
			scan := bufio.NewScanner(p.in)
			for scan.Scan() {
				p.lines <- scan.Text()
			}
		}()
	})
	return p.lines
}

func (p *Prompt) print(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// indented writes text that others wrote, line by line.
func (p *Prompt) indented(text string) {
	for line := range strings.Lines(p.clean(text)) {
		p.print("  %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// approval puts a call to the person that asks to be run.
func (p *Prompt) approval(call *harnessv1.PendingCall) {
	p.print("\n%s asks to be run:\n", p.clean(call.GetTool()))
	p.what(call)
	p.allow()
}

// review puts a call to the person that a hook wants to be looked at.
func (p *Prompt) review(call *harnessv1.PendingCall) {
	p.print("\nA hook wants you to look at %s before it runs:\n", p.clean(call.GetTool()))
	p.what(call)
	p.letGo()
}

// what writes the arguments of a call and why it waits.
func (p *Prompt) what(call *harnessv1.PendingCall) {
	arguments := call.GetArguments().GetInline()
	if blob := call.GetArguments().GetBlob(); blob != nil {
		arguments = fmt.Sprintf("%s... (%d bytes in all)", blob.GetPreview(), blob.GetSize())
	}
	p.indented(arguments)
	if call.GetWhy() != "" {
		p.print("%s\n", p.clean(call.GetWhy()))
	}
}

func (p *Prompt) allow() { p.print("Allow it? [y] once  [a] always for this run  [n] no: ") }

func (p *Prompt) letGo() { p.print("Let it run? [y] yes  [n] no: ") }

// question puts a question of the agent, or of its contract, to the person.
func (p *Prompt) question(call *harnessv1.PendingCall) {
	text, options := render.Question(call)
	who := "The agent"
	if _, ok := runstate.QuestionOf(call); ok {
		who = "The contract"
	}
	p.print("\n%s asks:\n", who)
	p.indented(text)
	for i, option := range options {
		p.print("  [%d] %s\n", i+1, render.Short(option, 300))
	}
	if len(options) > 0 {
		p.print("Your answer, a number or your own words (Enter leaves it waiting): ")
		return
	}
	p.print("Your answer (Enter leaves it waiting): ")
}

// chosen is the answer that a line gives to a question: the option whose number
// it is, else the line itself; empty when the person leaves the question.
func chosen(line string, options []string) string {
	line = strings.TrimSpace(line)
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return options[n-1]
	}
	return line
}

// verdict is what a line says to a call that asks to be run.
type verdict struct {
	// decision is unset when the line says nothing that is known.
	decision harnessv1.ApprovalDecision
	reason   string
}

func decided(line string) verdict {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(word) {
	case "y", "yes":
		return verdict{decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}
	case "a", "always":
		return verdict{decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN}
	case "n", "no":
		return verdict{decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, reason: strings.TrimSpace(rest)}
	}
	return verdict{}
}
