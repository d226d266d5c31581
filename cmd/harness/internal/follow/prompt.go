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

// Prompt prompts a user at a terminal.
type Prompt struct {
	in    io.Reader
	out   io.Writer
	clean func(string) string

	once  sync.Once
	lines chan string
}

// NewPrompt writes prompts to out and reads lines from in. clean makes foreign text safe
// for the terminal.
func NewPrompt(in io.Reader, out io.Writer, clean func(string) string) *Prompt {
	return &Prompt{in: in, out: out, clean: clean, lines: make(chan string)}
}

// read starts to read lines, at the first prompt. A read from a terminal cannot be
// cancelled, so the goroutine lives as long as the process.
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

// indented writes foreign text line by line.
func (p *Prompt) indented(text string) {
	for line := range strings.Lines(p.clean(text)) {
		p.print("  %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// approval shows a call that waits for an approval.
func (p *Prompt) approval(call *harnessv1.PendingCall) {
	p.print("\n%s asks to be run:\n", p.clean(call.GetTool()))
	p.what(call)
	p.allow()
}

// review shows a call that a hook wants reviewed.
func (p *Prompt) review(call *harnessv1.PendingCall) {
	p.print("\nA hook requests a review of %s before it runs:\n", p.clean(call.GetTool()))
	p.what(call)
	p.allowRun()
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

func (p *Prompt) allowRun() { p.print("Let it run? [y] yes  [n] no: ") }

// question shows a question of the agent or of its contract.
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
		p.print("Your answer, a number or text (Enter to skip): ")
		return
	}
	p.print("Your answer (Enter to skip): ")
}

// chosen returns the answer that a line gives to a question: the option with that
// number, otherwise the line itself; empty if the user leaves the question open.
func chosen(line string, options []string) string {
	line = strings.TrimSpace(line)
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return options[n-1]
	}
	return line
}

// verdict is the meaning of a line about a call that waits for an approval.
type verdict struct {
	// decision is unset if the line was not understood.
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
