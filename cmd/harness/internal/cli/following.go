package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// following is the common part of the commands that follow a run.
type runFollower struct {
	target  *target
	session *backend.Session
	run     string
	// output is text, json or jsonl.
	output string
	// render is auto, markdown or plain: how text shows the run.
	render string
	// guidance shows the guidance that opens every run.
	guidance bool
	// alone leaves out the runs of sub-agents.
	alone    bool
	noDeltas bool
	// after is the version after which events are shown, and since when those of runs below.
	after uint64
	since time.Time
	// sent are our inputs that are not accepted yet.
	sent []string
	// resume is the one of them that only resumes the run.
	resume string
	// onlyWatch makes a signal leave the run unchanged.
	onlyWatch bool
	// stored ends with what is stored, because nothing can continue the run.
	stored bool
	// newModel is the model of --model for an existing run, PROVIDER:NAME; empty: the run's.
	newModel string
	// transcript is the file that gets the conversation; empty: none does.
	transcript string
	// header is shown first, in text.
	model, workspace, goal string
}

// printer returns the printer of the events, and the narrator for output to people.
func (f *runFollower) printer(ctx context.Context, a *app) (follow.Printer, narrator) {
	switch f.output {
	case "json":
		return render.NewQuiet(a.err), nil
	case "jsonl":
		return render.NewLines(a.out, a.err), nil
	}
	text := f.newNarrator(ctx, a)
	text.Header(f.run, f.model, f.workspace, f.goal)
	return text, text
}

// follow follows the run until it is parked or has ended, prints the result and what to
// do next.
func (f *runFollower) follow(ctx context.Context, a *app) (int, error) {
	printer, text := f.printer(ctx, a)
	cfg := follow.Config{
		Client: f.session.Client, Namespace: f.target.Namespace, Run: f.run,
		After: f.after, Sent: f.sent, NoDeltas: f.noDeltas || f.output == "json",
		Printer: printer, Signals: a.signals, Lost: f.session.Lost, Stored: f.stored, Unread: f.onlyWatch && f.output == "jsonl",
	}
	cfg.Leave, cfg.Tree, cfg.Since = !f.session.Local, !f.alone, f.since
	if f.session.Process != nil {
		cfg.Rejoin = func(ctx context.Context, resume bool) (harnessv1.GatewayServiceClient, string, error) {
			return f.rejoin(ctx, a, resume)
		}
	}
	cfg.Prompt = newPrompt(ctx, a)
	followed := ctx
	if f.onlyWatch {
		var stop func()
		followed, stop = a.cancelOnSignal(ctx)
		defer stop()
		cfg.Signals = nil
	}
	outcome, err := follow.Follow(followed, cfg)
	if text != nil {
		text.Close()
		a.logs.redirect(a.err)
	}
	switch {
	case errors.Is(err, errSignal):
		a.printNote("detached; the run continues")
		return exit.Parked, nil
	case errors.Is(err, follow.ErrStopped):
		a.printNote("%s; to continue: harness resume %s%s", err, f.run, f.target.words(a))
		return exit.Parked, nil
	case errors.Is(err, follow.ErrLeft):
		a.printNote("%s", message(err))
		a.printNote("to continue: harness resume %s%s", f.run, f.target.words(a))
		f.session = nil // leave without waiting
		return exit.Parked, nil
	case errors.Is(err, follow.ErrStored):
		a.printNote("%s: data directory %s cannot be written", err, f.target.Data)
		return exit.Parked, nil
	case errors.Is(err, follow.ErrUnread):
		return exit.Error, nil
	case err != nil:
		return exit.Error, err
	}
	for id, reason := range outcome.Rejected {
		if id == f.resume && outcome.Moved {
			continue // another input had resumed it before
		}
		a.printNote("the run rejected the input: %s", reason)
	}
	result, err := backend.Whole(ctx, f.session.Client, f.target.Namespace, f.run, outcome.Result)
	if err != nil {
		a.printNote("the whole answer cannot be read: %s", message(err))
	}
	if err := f.print(a, text, result); err != nil {
		return exit.Error, fmt.Errorf("stdout: %w", err)
	}
	f.hints(ctx, a, text, result)
	if err := f.writeTranscript(ctx); err != nil {
		return exit.Error, fmt.Errorf("--transcript: %w", err)
	}
	return exit.Code(result), nil
}

// print writes the result. A closed stdout is no error.
func (f *runFollower) print(a *app, text narrator, r *harnessv1.HarnessResult) error {
	var line []byte
	var err error
	switch f.output {
	case "json":
		line, err = eventjson.Result(f.run, r)
	case "jsonl":
		line, err = eventjson.ResultLine(f.run, r)
	default:
		text.Result(r)
		if r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE && r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_STALLED {
			return nil // what was said last is no answer
		}
		answer := f.unseen(a, text, r)
		if answer == "" {
			return nil
		}
		return emitRaw(a.out, []byte(f.rendered(a, answer)))
	}
	if err != nil {
		return err
	}
	return emit(a.out, line)
}

// unseen returns the part of the answer that is not already on the same screen.
func (f *runFollower) unseen(a *app, text narrator, r *harnessv1.HarnessResult) string {
	whole, said := render.Answer(r), strings.TrimSpace(text.Shown())
	if !isTerminal(a.out) || !isTerminal(a.err) {
		return whole
	}
	if rest, found := strings.CutPrefix(whole, said); found && said != "" && (rest == "" || f.laidOut(a, a.err)) {
		return strings.TrimSpace(rest)
	}
	return whole
}

// emit writes lines of text or of JSON to stdout. What no text and no JSON of this program
// has, because a terminal might obey it, becomes an escape of JSON.
func emit(out io.Writer, lines []byte) error { return emitRaw(out, content.EscapeJSON(lines)) }

// emitRaw writes lines to stdout, whose reader may have gone away.
func emitRaw(out io.Writer, line []byte) error {
	_, err := out.Write(append(line, '\n'))
	if errors.Is(err, os.ErrClosed) || isBrokenPipe(err) {
		return nil
	}
	return err
}

// style returns the style of lines for people on a stream.
func (a *app) style(stream any) render.Style {
	locale := a.env("LC_ALL")
	for _, name := range []string{"LC_CTYPE", "LANG"} {
		if locale == "" {
			locale = a.env(name)
		}
	}
	locale = strings.ToLower(locale)
	return render.Style{
		Width:  a.width(stream),
		Colour: isTerminal(stream) && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb",
		UTF8:   strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8"),

		Terminal: isTerminal(stream),
	}
}

// narrowest is the narrowest terminal whose width is used.
const narrowest = 20

// width returns the line width of a stream: COLUMNS, otherwise the terminal's; 0 without
// a terminal.
func (a *app) width(stream any) int {
	width, err := strconv.Atoi(a.env("COLUMNS"))
	if f, ok := stream.(*os.File); err != nil && ok {
		width, _, err = term.GetSize(int(f.Fd()))
	}
	if err != nil || width < narrowest {
		return 0
	}
	return width
}

// budgets returns the budgets that flags set; nil if none does.
func budgets(turns, toolCalls *uint32, tokens *uint64, cost *float64, runs *uint32, timeout *durationFlag) *harnessv1.Budgets {
	b := &harnessv1.Budgets{Turns: turns, ToolCalls: toolCalls, Tokens: tokens, CostUsd: cost, Runs: runs}
	if timeout != nil {
		b.WallClock = durationpb.New(timeout.d)
	}
	if turns == nil && toolCalls == nil && tokens == nil && cost == nil && runs == nil && timeout == nil {
		return nil
	}
	return b
}
