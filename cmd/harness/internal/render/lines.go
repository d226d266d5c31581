package render

import (
	"io"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Lines writes a line of JSON for each event and each piece of text.
type Lines struct {
	out  sink
	diag sink
}

// NewLines returns a Lines that writes lines to out and remarks to diag.
func NewLines(out, diag io.Writer) *Lines { return &Lines{out: sink{w: out}, diag: sink{w: diag}} }

// Err returns the first error of the standard output.
func (l *Lines) Err() error { return l.out.err }

// Remark writes a remark of the program.
func (l *Lines) Remark(text string) { l.diag.print("harness: " + clean(text) + "\n") }

// Asking does nothing.
func (l *Lines) Asking(bool) {}

// Event writes an event.
func (l *Lines) Event(e *harnessv1.Event) { l.write(eventjson.Event(e)) }

// Delta writes a piece of the model's reasoning and one of its text, an alert, or a piece of
// the output of a command.
func (l *Lines) Delta(d *harnessv1.Delta) {
	if d.GetToolOutput() != nil {
		l.write(eventjson.ToolOutput(d))
		return
	}
	if d.GetAlert() != nil {
		l.write(eventjson.Alert(d))
		return
	}
	if d.GetReasoning() != "" {
		l.write(eventjson.ReasoningDelta(d))
	}
	if d.GetText() != "" || d.GetReasoning() == "" {
		l.write(eventjson.Delta(d))
	}
}

func (l *Lines) write(line []byte, err error) {
	if err == nil {
		l.out.print(string(content.EscapeJSON(line)) + "\n")
	}
}

// Quiet writes nothing but remarks.
type Quiet struct {
	diag sink
}

// NewQuiet returns a Quiet that writes remarks to diag.
func NewQuiet(diag io.Writer) *Quiet { return &Quiet{diag: sink{w: diag}} }

// Err returns nil: an error does not matter, because there is no output.
func (q *Quiet) Err() error { return nil }

// Remark writes a remark of the program.
func (q *Quiet) Remark(text string) { q.diag.print("harness: " + clean(text) + "\n") }

// Asking does nothing.
func (q *Quiet) Asking(bool) {}

// Event does nothing.
func (q *Quiet) Event(*harnessv1.Event) {}

// Delta does nothing.
func (q *Quiet) Delta(*harnessv1.Delta) {}
