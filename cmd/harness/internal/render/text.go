// Package render prints the events of a run: for people on the diagnostic stream, or
// as JSON on the standard output. A writer that fails does not stop a run: its first
// error is kept, and nothing more is written.
package render

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Text prints events for people as they happen.
type Text struct {
	style Style
	out   sink
	// fetch returns the whole text of a content.
	fetch func(*harnessv1.Content) string
	// current is the answer of the model in the current turn; alerts are those of its text.
	current answer
	alerts  alerts
	// midline reports whether the cursor follows text of the model; reasoning, whether
	// that text is reasoning.
	midline, reasoning bool
	// errors are those that the result may repeat.
	errors turnErrors
	// answer is the last whole text of the model that was shown.
	answer string
	// goal is the goal in the header.
	goal string
	// turn is the turn of the last heading.
	turn uint32
	// reviews are the calls for which a hook requires a review.
	reviews map[string]bool
	// opened reports whether a segment has begun and has no plan yet.
	opened bool
	// work has the run's work items.
	work work
	// unmet are the requirements that were last shown as not met, each with its reason.
	unmet map[string]string
	// head prints the heading of a turn; nil stands for the plain heading.
	head func(turn, limit uint32)
}

// NewText returns a Text that writes to out. fetch returns the whole text of a
// content; nil prints the preview of a blob.
func NewText(out io.Writer, style Style, fetch func(*harnessv1.Content) string) *Text {
	if fetch == nil {
		fetch = preview
	}
	return &Text{style: style, out: sink{w: out}, fetch: fetch}
}

// Err returns the first error of the writer.
func (t *Text) Err() error { return t.out.err }

// Asking does nothing: a prompt does not change how lines are printed.
func (t *Text) Asking(bool) {}

// Close does nothing.
func (t *Text) Close() {}

// Shown returns the last whole text of the model that was printed.
func (t *Text) Shown() string { return t.answer }

// Header prints the run, its model, workspace and goal; empty ones are left out.
func (t *Text) Header(run, model, workspace, goal string) {
	parts := []string{t.style.bold("run " + run)}
	for _, part := range []string{model, workspace} {
		if part != "" {
			parts = append(parts, clean(part))
		}
	}
	t.line(strings.Join(parts, t.style.dot()))
	t.goal = goal
	if goal != "" {
		t.line(t.style.dim("goal: " + shorten(goal, 200)))
	}
}

// Remark prints a remark of the program.
func (t *Text) Remark(text string) { t.line(t.style.dim("(" + clean(text) + ")")) }

// line prints a separate line.
func (t *Text) line(s string) {
	t.endText()
	t.out.print(s + "\n")
}

// endText ends the model's text with a line break if it has none.
func (t *Text) endText() {
	if t.midline {
		t.out.print("\n")
	}
	t.midline, t.reasoning = false, false
}

// write prints a part of the model's text.
func (t *Text) write(text string) {
	if text == "" {
		return
	}
	if t.reasoning {
		t.endText()
	}
	if text = t.endLine(text); text == "" {
		return
	}
	t.out.print(clean(text))
	t.midline = !strings.HasSuffix(text, "\n")
}

// think prints a part of the model's reasoning, with a bar before each line.
func (t *Text) think(text string) {
	if text == "" || !t.style.Terminal {
		return
	}
	if !t.reasoning {
		t.endText()
		t.reasoning = true
	}
	for line := range strings.Lines(clean(text)) {
		if !t.midline {
			t.out.print(t.style.dim(t.style.bar()))
		}
		words, ended := strings.CutSuffix(line, "\n")
		t.out.print(t.style.dim(words))
		if t.midline = !ended; ended {
			t.out.print("\n")
		}
	}
}

// Delta prints a piece of the model's text and of its reasoning, or an alert. Output of a command is in
// its result.
func (t *Text) Delta(d *harnessv1.Delta) {
	if d.GetToolOutput() != nil {
		return
	}
	if d.GetAlert() != nil {
		t.alert(d)
		return
	}
	next := t.current.add(d)
	if next.voidText {
		t.alerts.waiting = nil
		t.again()
	}
	if next.text != "" || next.reasoning != "" && t.style.Terminal {
		t.heading(d.GetTurnNumber(), 0)
	}
	t.think(next.reasoning)
	t.write(next.text)
}

func (t *Text) again() { t.Remark("starting the answer again") }

// heading prints the heading of a turn, once.
func (t *Text) heading(turn, limit uint32) {
	if turn == 0 || turn == t.turn {
		return
	}
	t.turn = turn
	if t.head != nil {
		t.head(turn, limit)
		return
	}
	t.endText()
	t.out.print("\n")
	t.line(t.style.bold(turnTitle(turn, limit)))
}

// turnTitle returns the title of a turn; limit is the turn after which the run ends, 0 if that
// is unknown.
func turnTitle(turn, limit uint32) string {
	title := fmt.Sprintf("turn %d", turn)
	if limit > 0 {
		title += fmt.Sprintf("/%d", limit)
	}
	return title
}

// Event prints an event.
func (t *Text) Event(e *harnessv1.Event) {
	t.showErrors(e)
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_SessionStart:
		t.opened = true
		if s := v.SessionStart; s.GetSegment() > 1 && !strings.HasPrefix(t.goal, s.GetGoal()) {
			t.line(t.style.dim("message: " + shorten(s.GetGoal(), 200)))
		}
	case *harnessv1.Event_PlanCommit:
		// The first plan of a segment is the goal, which the header shows.
		if !t.opened {
			t.line("new plan: " + shorten(v.PlanCommit.GetPlan(), 300))
		}
		t.opened = false
	case *harnessv1.Event_StepStart:
		t.stepStart(e, v.StepStart)
	case *harnessv1.Event_WorkItemChanged:
		t.work.change(v.WorkItemChanged)
	case *harnessv1.Event_StepEnd:
		t.endText()
		t.Lines(t.work.flush(t.style)...)
		if err := v.StepEnd.GetError(); err != "" {
			t.errors = turnErrors{turn: err} // it names why each model was given up
		}
	case *harnessv1.Event_ModelResponse:
		t.modelResponse(e, v.ModelResponse)
	case *harnessv1.Event_ModelRetry:
		if v.ModelRetry.GetGivenUp() {
			t.errors.models = append(t.errors.models, v.ModelRetry)
			break
		}
		if line := t.retryLine(v.ModelRetry); line != "" {
			t.line(line)
		}
	case *harnessv1.Event_QualityAlert:
		t.alertEvent(e)
	case *harnessv1.Event_SessionResume:
		t.line(t.style.dim("resumed (" + clean(v.SessionResume.GetCause()) + ")"))
	default:
		if line := t.toolLine(e); line != "" {
			t.line("  " + line)
		} else if line := t.compactionLine(e); line != "" {
			t.line(line)
		} else if line := t.controlLine(e); line != "" {
			t.line(line)
		} else {
			t.Lines(t.guideLines(e)...)
		}
	}
}

// adjusted has what a request does after a refusal, by the adjustment that the refusal asks for.
var adjusted = map[string]string{
	"wire_chat":      "its requests go to chat/completions from now on",
	"wire_responses": "its requests go to responses from now on",
	"no_opaque":      "asked again without the earlier reasoning",
	"no_summary":     "asked again without a summary of the reasoning",
	"no_encrypted":   "asked again without encrypted reasoning",
	"no_schema":      "asked again without the schema of the answer",
	"no_tool":        "asked again without the tool that it refuses",
	"no_member":      "asked again without the optional setting that it refuses",
}

func (t *Text) retryLine(r *harnessv1.ModelRetry) string {
	why := shorten(r.GetError(), 200)
	if adjustment := r.GetAdjustment(); adjustment != "" {
		said, found := adjusted[adjustment]
		switch {
		case !found:
			said = "asked again in another way (" + shorten(strings.ReplaceAll(adjustment, "_", " "), 40) + ")"
		case !t.style.first(adjustment + " " + r.GetModel()):
			return ""
		}
		return t.style.dim("model: " + why + "; " + said)
	}
	next := "now"
	if wait := r.GetWait().AsDuration(); measurable(wait) {
		next = "in " + span(wait)
	}
	return t.style.warn(fmt.Sprintf("model: try %d failed: %s; next try %s", r.GetTry(), why, next))
}

func (t *Text) stepStart(e *harnessv1.Event, s *harnessv1.StepStart) {
	t.heading(e.GetTurnNumber(), e.GetMaxTurns())
	switch {
	case s.GetResumed():
		t.line(t.style.dim(fmt.Sprintf("turn %d resumed", e.GetTurnNumber())))
	case s.GetAttempt() > 1:
		t.line(t.style.dim(fmt.Sprintf("turn %d continues (attempt %d)", e.GetTurnNumber(), s.GetAttempt())))
	}
}

func (t *Text) modelResponse(e *harnessv1.Event, r *harnessv1.ModelResponse) {
	turn := e.GetTurnNumber()
	t.heading(turn, e.GetMaxTurns())
	text, reasoning := t.fetch(r.GetText()), ""
	if t.style.Terminal {
		reasoning = t.fetch(r.GetReasoning())
	}
	next := t.current.commit(turn, text, reasoning)
	if next.voidText {
		t.again()
	}
	t.think(next.reasoning)
	t.write(next.text)
	t.endText()
	if tokens := r.GetUsage().GetReasoningTokens(); tokens > 0 && reasoning == "" {
		t.line(t.style.dim(thoughtFor(tokens)))
	}
	if text != "" {
		t.answer = text
	}
}

// thoughtFor returns the line for reasoning whose text is not shown.
func thoughtFor(tokens uint64) string { return "thought for " + plural(tokens, "token") }

// toolLine returns the line for an event about a call, empty for others.
func (t *Text) toolLine(e *harnessv1.Event) string {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_ToolCall:
		if v.ToolCall.GetAwaits() == "" && listed(v.ToolCall.GetTool()) {
			return ""
		}
		return t.toolCall(v.ToolCall)
	case *harnessv1.Event_ToolResult:
		r := v.ToolResult
		if listed(r.GetTool()) {
			return ""
		}
		said := ""
		if !silent(r.GetTool()) {
			said = firstLine(approval.Result(preview(r.GetResult())))
		}
		return t.outcome(t.style.good(t.style.tick()), r.GetTool(), r.GetDuration(), said)
	case *harnessv1.Event_ToolError:
		r := v.ToolError
		said, last := failure(r.GetTool(), t.fetch(r.GetError()))
		lines := append([]string{t.outcome(t.style.bad(t.style.cross()), r.GetTool(), r.GetDuration(), said)}, t.style.failureLines(last, 0)...)
		return strings.Join(lines, "\n")
	case *harnessv1.Event_ToolDenied:
		d := v.ToolDenied
		return t.style.bad(t.style.cross()) + " " + clean(d.GetTool()) + " denied: " + shorten(d.GetReason(), 200)
	case *harnessv1.Event_Repair:
		r := v.Repair
		return t.style.warn("repaired: "+clean(r.GetTool())+" of turn "+fmt.Sprint(r.GetTurn())) + ": " + shorten(r.GetReason(), 200)
	}
	return ""
}

// toolCall returns the line for a call. The approval request of a call that waits has
// a separate line.
func (t *Text) toolCall(c *harnessv1.ToolCalled) string {
	switch c.GetAwaits() {
	case "question":
		text, options := Question(&harnessv1.PendingCall{Tool: c.GetTool(), Arguments: c.GetArguments()})
		line := t.style.warn("? the agent asks: " + shorten(text, 300))
		for i, option := range options {
			line += fmt.Sprintf(" [%d] %s", i+1, shorten(option, 60))
		}
		return line
	case "review":
		if t.reviews == nil {
			t.reviews = map[string]bool{}
		}
		t.reviews[c.GetCallId()] = true // its request prints that it waits
	case "client_tool":
		return t.style.arrow() + " " + call(c.GetTool(), c.GetArguments()) + t.style.warn(" waits for its client")
	}
	return t.style.arrow() + " " + call(c.GetTool(), c.GetArguments())
}

// outcome returns the line for the end of a call; took is nil if the result came from
// outside.
func (t *Text) outcome(mark, tool string, took *durationpb.Duration, said string) string {
	line := mark + " " + clean(tool)
	if took != nil && measurable(took.AsDuration()) {
		line += " " + span(took.AsDuration())
	}
	if said != "" {
		line += t.style.dim("  " + shorten(said, 200))
	}
	return line
}
