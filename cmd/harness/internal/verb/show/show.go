// Package show is the verbs that print runs: show, list, last and watch. They change nothing, except
// that watch continues a run on which no process works.
package show

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (Cmd) Help() string {
	return "Example:\n\n  harness show r-x7k2qm4a --conversation"
}

// Cmd shows the status of a run, its state, its conversation, or what of the
// conversation the model was sent.
type Cmd struct {
	target.OneRun `embed:""`
	Output        string  `enum:"text,json" default:"text" help:"Format of the output: text or json."`
	Conversation  bool    `help:"Show the conversation instead, without the system prompt."`
	System        bool    `help:"With --conversation: also show the system prompt."`
	Turn          *uint32 `placeholder:"N" help:"Show the conversation of one turn."`
	Call          string  `placeholder:"N" help:"Show one call with all of its arguments and its whole result: its id, or its number in the run."`
	State         *uint64 `placeholder:"[VERSION]" help:"Show the state instead, at a version or at the newest one."`
	Context       bool    `help:"Show what the model was sent instead, or would be sent: the messages with their tokens, and what compaction did to them."`
	Version       uint64  `placeholder:"N" help:"Version of the run for --context, such as that of a model.response. Default: the newest."`
}

func (c *Cmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	if c.Conversation && c.State != nil {
		if err := a.Conflict("conversation", "state"); err != nil {
			return exit.Error, err
		}
	}
	if err := c.checkParts(a); err != nil {
		return exit.Error, err
	}
	if err := c.checkContext(a); err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Read)
	if err != nil {
		return console.Before(err)
	}
	defer target.Disconnect(ctx, a, session)
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()

	if c.Context {
		if err := c.context(ctx, a, session); err != nil {
			return exit.Error, err
		}
		return exit.Done, nil
	}
	var out []byte
	switch {
	case c.Call != "":
		out, err = c.call(ctx, session)
	case c.Conversation || c.Turn != nil:
		out, err = c.conversation(ctx, a, session)
	case c.State != nil:
		out, err = c.state(ctx, session)
	default:
		out, err = c.overview(ctx, a, session)
	}
	if err != nil {
		return exit.Error, err
	}
	return exit.Done, console.Emit(a.Out, bytes.TrimRight(out, "\n"))
}

// state prints JSON in both formats, indented as text.
func (c *Cmd) state(ctx context.Context, s *backend.Session) ([]byte, error) {
	answer, err := s.Client.GetState(ctx, &harnessv1.GetStateRequest{Namespace: c.Namespace, RunId: c.RunID, Version: *c.State})
	if err != nil {
		return nil, err
	}
	line, err := eventjson.Message(answer)
	if err != nil || c.Output == "json" {
		return line, err
	}
	var text bytes.Buffer
	err = json.Indent(&text, line, "", "  ")
	return text.Bytes(), err
}

// overview returns the run, its spec, and its result.
func (c *Cmd) overview(ctx context.Context, a *console.Console, s *backend.Session) ([]byte, error) {
	answer, err := s.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: c.Namespace, RunId: c.RunID})
	if err != nil {
		return nil, err
	}
	if answer.GetResult() != nil {
		if answer.Result, err = backend.Whole(ctx, s.Client, c.Namespace, c.RunID, answer.GetResult()); err != nil {
			return nil, err
		}
	}
	state, err := s.Client.GetState(ctx, &harnessv1.GetStateRequest{Namespace: c.Namespace, RunId: c.RunID})
	if err != nil {
		return nil, err
	}
	if c.Output == "json" {
		return overviewJSON(answer, state.GetSnapshot())
	}
	run, spec := answer.GetRun(), answer.GetSpec()
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%-11s %s\n", name, value)
		}
	}
	text.WriteString(c.why(ctx, a, s, answer.GetResult()))
	line("run", run.GetNamespace()+"/"+run.GetRunId())
	line("status", render.StatusName(run.GetStatus()))
	line("goal", wrapped(render.Short(run.GetGoal(), 300), a.Width(a.Out)))
	line("model", render.Clean(run.GetModel()))
	if effort := spec.GetAgent().GetReasoning().GetEffort(); effort != harnessv1.Effort_EFFORT_UNSPECIFIED {
		line("effort", strings.ToLower(strings.TrimPrefix(effort.String(), "EFFORT_")))
	}
	line("agent", render.Clean(spec.GetAgent().GetName()))
	line("workspace", render.Clean(spec.GetWorkspace()))
	line("workflow", render.Clean(strings.Join(spec.GetWorkflow(), ", ")))
	line("mode", render.Clean(state.GetSnapshot().GetMode()))
	line("turns", fmt.Sprintf("%d of %d", run.GetTurnCount(), run.GetMaxTurns()))
	line("started", run.GetCreateTime().AsTime().Local().Format(time.DateTime))
	line("started by", render.Clean(run.GetStartedBy()))
	line("features", render.Clean(strings.Join(run.GetFeatures(), ", ")))
	line("updated", run.GetUpdateTime().AsTime().Local().Format(time.DateTime))
	line("version", fmt.Sprint(run.GetVersion()))
	text.WriteString(traceText(run.GetTraceIds(), a.Env(EnvTraceURL)))
	text.WriteString(workText(a.Style(a.Out), state.GetSnapshot()))
	text.WriteString(c.agents(ctx, s, run))
	if result := answer.GetResult(); result != nil {
		text.WriteString("\n" + strings.Join(a.Style(a.Out).ResultLines(result), "\n") + "\n")
		for _, line := range notTakenIn(answer.GetWaiting()) {
			text.WriteString("\n" + line + "\n")
		}
		if len(answer.GetWaiting()) > 0 && s.Local && !s.Working {
			fmt.Fprintf(&text, "\nno process here handles it: harness resume %s%s\n", c.RunID, c.Words(a))
		}
		if said := render.Answer(result); said != "" {
			text.WriteString("\n" + render.Clean(said) + "\n")
		}
	}
	return []byte(text.String()), nil
}

// overviewIndent is the width of the names in an overview.
const overviewIndent = 12

// wrapped breaks a value of the overview at spaces, below its beginning; a width of 0 breaks
// nothing.
func wrapped(value string, width int) string {
	if width <= 2*overviewIndent {
		return value
	}
	return strings.ReplaceAll(ansi.Wordwrap(value, width-overviewIndent, ""), "\n", "\n"+strings.Repeat(" ", overviewIndent))
}

// notTakenIn returns lines about inputs that no process has processed yet.
func notTakenIn(waiting []*harnessv1.WaitingInput) []string {
	var lines []string
	for _, w := range waiting {
		what := "the " + render.Clean(strings.ReplaceAll(w.GetKind(), "_", " "))
		if w.GetCallId() != "" {
			what = "the answer to " + render.Clean(w.GetCallId())
		}
		lines = append(lines, what+" is stored and not taken in yet")
	}
	return lines
}

// waits prints what a parked run waits for, and how to continue it.
func (c *Cmd) waits(ctx context.Context, a *console.Console, s *backend.Session, r *harnessv1.HarnessResult) string {
	if r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED {
		return ""
	}
	style, words, now := a.Style(a.Out), c.Words(a), time.Now()
	var text strings.Builder
	for _, p := range r.GetPending() {
		waiting := render.PendingCall{Call: p, Run: p.GetRunId(), Command: target.Answering(target.RunOf(c.RunID, p, r.GetPending()), p, words), Or: target.Alternatives(p)}
		text.WriteString("\n" + strings.Join(style.PendingLines(waiting, now), "\n") + "\n")
	}
	if wakes := style.WakeLine(r, now); wakes != "" {
		text.WriteString("\n" + wakes + "\n")
	}
	if len(r.GetPending()) == 0 {
		fmt.Fprintf(&text, "to continue: harness resume %s%s%s\n", c.RunID, target.Extension(ctx, s, c.Namespace, c.RunID, r), words)
	}
	return text.String()
}
