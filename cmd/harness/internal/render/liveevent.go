package render

import (
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Header shows what the run is about.
func (l *Live) Header(run, model, workspace, goal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.cfg.Style
	room := l.width - 1
	lead := s.mark("▌ ", "| ")
	title := s.bold("run " + clean(run))
	for _, part := range []string{model, workspace} {
		if part == "" {
			continue
		}
		if rest := room - ansi.StringWidth(lead+title+s.dot()); rest >= 12 {
			title += s.dim(s.dot()) + middle(clean(part), rest, s.mark("…", "..."))
		}
	}
	l.up(sortHead, s.good(lead)+ansi.Truncate(title, room-2, ""))
	l.plain.goal = goal
	if goal == "" {
		return
	}
	text := ansi.Wordwrap(shorten(goal, 400), room-2, "")
	for line := range strings.SplitSeq(text, "\n") {
		l.up(sortHead, s.good(lead)+s.dim(line))
	}
}

// head shows the heading of a turn.
func (l *Live) head(turn, limit uint32) {
	l.endAnswer()
	l.flush(true)
	s := l.cfg.Style
	title := turnTitle(turn, max(limit, l.gauge.maxTurns))
	bar := s.mark("─", "-")
	line := s.dim(bar+bar) + " " + s.bold(title) + " "
	l.take()
	if l.below {
		l.up(sortHead, s.bold(title))
		return
	}
	l.above = append(l.above, "")
	l.ended = sortNone
	l.up(sortHead, line+s.dim(strings.Repeat(bar, max(0, min(l.width-1, widest)-ansi.StringWidth(line)))))
}

// Remark shows a remark of the program.
func (l *Live) Remark(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plain.Remark(text)
	l.take()
	l.drawIfIdle()
}

// Lines shows separate lines.
func (l *Live) Lines(lines ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.above = append(l.above, lines...)
	l.ended = sortLine
	l.drawIfIdle()
}

// Event shows an event.
func (l *Live) Event(e *harnessv1.Event) {
	text, reasoning := "", ""
	if r := e.GetModelResponse(); r != nil { // may take seconds, while frames are drawn
		text = l.cfg.Fetch(r.GetText())
		if !l.cfg.Still {
			reasoning = l.cfg.Fetch(r.GetReasoning())
		}
	}
	said, last := "", []string(nil)
	if r := e.GetToolError(); r != nil {
		said, last = failure(r.GetTool(), l.cfg.Fetch(r.GetError()))
	}
	change := l.change(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gauge.event(e, l.cfg.Now())
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_ModelResponse:
		l.plain.showErrors(e)
		l.plain.heading(e.GetTurnNumber(), e.GetMaxTurns())
		l.commit(e.GetTurnNumber(), text, reasoning, v.ModelResponse.GetUsage().GetReasoningTokens())
	case *harnessv1.Event_ToolCall:
		l.toolCall(e, v.ToolCall)
	case *harnessv1.Event_ToolResult:
		if r := v.ToolResult; !listed(r.GetTool()) {
			if !silent(r.GetTool()) {
				said = approval.Result(preview(r.GetResult()))
			}
			l.calls.end(r.GetCallId(), r.GetTool(), callDone, took(r.GetDuration()), said)
			l.calls.find(r.GetCallId()).change = change
		}
	case *harnessv1.Event_ToolError:
		r := v.ToolError
		l.calls.end(r.GetCallId(), r.GetTool(), callFailed, took(r.GetDuration()), said)
		l.calls.find(r.GetCallId()).last = last
	case *harnessv1.Event_ToolDenied:
		d := v.ToolDenied
		l.calls.end(d.GetCallId(), d.GetTool(), callDenied, -1, d.GetReason())
	case *harnessv1.Event_ApprovalRequested:
		a := v.ApprovalRequested
		what := "waits for approval"
		if l.plain.reviews[a.GetCallId()] {
			what = "waits for a review"
		}
		if a.GetWhy() != "" {
			what += ": " + a.GetWhy()
		}
		l.calls.park(&shownCall{id: a.GetCallId(), tool: a.GetTool(), arguments: a.GetArguments(), state: callAsks, said: what})
	default:
		l.other(e)
	}
	l.flush(false)
	l.drawIfIdle()
}

// change returns the arguments of the call whose result an event has, if it has written a
// file and people read along. Reading them may take seconds, while frames are drawn.
func (l *Live) change(e *harnessv1.Event) string {
	r := e.GetToolResult()
	if r == nil || l.cfg.Still {
		return ""
	}
	l.mu.Lock()
	call := l.calls.find(r.GetCallId())
	if call == nil {
		call = l.calls.parks[r.GetCallId()]
	}
	l.mu.Unlock()
	return argumentsOf(call, l.cfg.Fetch)
}

// other shows an event that has no live form.
func (l *Live) other(e *harnessv1.Event) {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_StepStart:
		l.plain.Event(e)
		if v.StepStart.GetResumed() {
			l.resume(e)
		}
		l.take()
		return
	case *harnessv1.Event_StepEnd:
		l.endAnswer()
		l.flush(true)
	case *harnessv1.Event_GuidanceInjected: // at most one line, unless it ends with the command that the person needs
		if k := v.GuidanceInjected.GetKind(); k == guardedKind || k == skillsKind {
			break
		}
		for _, line := range l.plain.guideLines(e) {
			l.take()
			l.up(sortLine, ansi.Truncate(line, l.width-1, l.cfg.Style.mark("…", "...")))
		}
		return
	case *harnessv1.Event_ApprovalAnswered:
		if call := l.calls.parks[v.ApprovalAnswered.GetCallId()]; call != nil {
			call.state = callWaits
		}
		if v.ApprovalAnswered.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
			return // the end of its call shows it
		}
	}
	// A line may print a heading, which comes first: print, then take.
	l.plain.Event(e)
	l.take()
}

// resume shows the calls that were allowed as running.
func (l *Live) resume(e *harnessv1.Event) {
	for id, call := range l.calls.parks {
		if call.state == callWaits {
			l.calls.start(&shownCall{id: id, tool: call.tool, arguments: call.arguments, since: e.GetTime().AsTime()})
		}
	}
}

func (l *Live) toolCall(e *harnessv1.Event, c *harnessv1.ToolCalled) {
	call := &shownCall{id: c.GetCallId(), tool: c.GetTool(), arguments: proto.CloneOf(c.GetArguments())}
	if e.GetTime() != nil {
		call.since = e.GetTime().AsTime()
	}
	switch c.GetAwaits() {
	case "":
		if !listed(c.GetTool()) {
			l.calls.start(call)
		}
	case "question":
		l.plain.Event(e)
		l.take()
	case "client_tool":
		call.state, call.said = callAsks, "waits for its client"
		l.calls.park(call)
	case "agent":
		call.state, call.took = callDelegates, -1
		l.calls.park(call)
	case "review":
		l.plain.toolCall(c) // its request shows that it waits
	}
}

// took returns how long a call ran, -1 if unknown.
func took(d *durationpb.Duration) time.Duration {
	if d == nil {
		return -1
	}
	return d.AsDuration()
}

// flush sends up the calls that have ended; all sends up the others too.
func (l *Live) flush(all bool) {
	for _, call := range l.calls.over(all) {
		l.up(sortCall, l.cfg.Style.callLines(call, l.width-1, l.cfg.Now())...)
	}
}

// Result shows the last lines: how the run ended, why, and its usage.
func (l *Live) Result(r *harnessv1.HarnessResult) {
	l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plain.Lines(l.plain.work.flush(l.cfg.Style)...)
	l.plain.Lines(l.plain.lastErrors(r.GetReason().GetMessage())...)
	l.take()
	s := l.cfg.Style
	l.above = append(l.above, "", s.dim(strings.Repeat(s.mark("─", "-"), min(l.width-1, widest))))
	for _, line := range s.ResultLines(r) {
		l.above = append(l.above, hang(line, l.width-1)...)
	}
	l.ended = sortLine
	l.draw()
}
