// Package follower follows a run for a command until it is parked or has ended: it connects so that
// the run can continue, prints its events and its result, and names the commands that continue it.
// A lost background process is connected again; a signal leaves or stops the run.
package follower

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// following is the common part of the commands that follow a run.
type Follower struct {
	Target  *target.Target
	Session *backend.Session
	Run     string
	// Output is text, json or jsonl.
	Output string
	// Render is auto, markdown or plain: how text shows the run.
	Render string
	// Guidance shows the guidance that opens every run.
	Guidance bool
	// Alone leaves out the runs of sub-agents.
	Alone    bool
	NoDeltas bool
	// After is the version after which events are shown, and since when those of runs below.
	After uint64
	Since time.Time
	// Sent are our inputs that are not accepted yet.
	Sent []string
	// Resume is the one of them that only resumes the run.
	Resume string
	// OnlyWatch makes a signal leave the run unchanged.
	OnlyWatch bool
	// Stored ends after the stored records, because nothing can continue the run.
	Stored bool
	// NewModel is the model of --model for an existing run, PROVIDER:NAME; empty: the run's.
	NewModel string
	// Transcript is the file that gets the conversation; empty: none does.
	Transcript string
	// header is shown first, in text.
	Model, Workspace, Goal string

	// former is the process that has ended, until the run is known to continue in the next one.
	former *backend.Process
	// lost is when a server was found to have ended; zero: it has not.
	lost time.Time
}

// printer returns the printer of the events, and the narrator for output to people.
func (f *Follower) printer(ctx context.Context, a *console.Console) (follow.Printer, narrator) {
	switch f.Output {
	case "json":
		return render.NewQuiet(a.Err), nil
	case "jsonl":
		return render.NewLines(a.Out, a.Err), nil
	}
	text := f.newNarrator(ctx, a)
	text.Header(f.Run, f.Model, f.Workspace, f.Goal)
	return text, text
}

// Follow follows the run until it is parked or has ended, prints the result and what to
// do next.
func (f *Follower) Follow(ctx context.Context, a *console.Console) (int, error) {
	printer, text := f.printer(ctx, a)
	cfg := follow.Config{
		Client: f.Session.Client, Namespace: f.Target.Namespace, Run: f.Run,
		After: f.After, Sent: f.Sent, NoDeltas: f.NoDeltas || f.Output == "json",
		Printer: printer, Signals: a.Signals, Lost: f.Session.Lost, Stored: f.Stored, Unread: f.OnlyWatch && f.Output == "jsonl",
	}
	cfg.Leave, cfg.Tree, cfg.Since, cfg.Answered = !f.Session.Local, !f.Alone, f.Since, !f.OnlyWatch
	if f.Session.Process != nil {
		cfg.Rejoin = func(ctx context.Context, resume bool) (harnessv1.GatewayServiceClient, string, error) {
			return f.rejoin(ctx, a, resume)
		}
	}
	keys := a.Keys()
	cfg.Prompt = NewPrompt(ctx, a)
	if keys != nil {
		defer keys.Stop()
		cfg.Keys, cfg.Prompt = keys, promptOf(ctx, a, keys)
	}
	followed := ctx
	if f.OnlyWatch {
		var stop func()
		followed, stop = a.CancelOnSignal(ctx)
		defer stop()
		cfg.Signals = nil
	}
	outcome, err := follow.Follow(followed, cfg)
	if text != nil {
		text.Close()
		a.Logs.Redirect(a.Err)
	}
	switch {
	case errors.Is(err, console.ErrSignal):
		a.Report("detached; the run continues")
		return exit.Parked, nil
	case errors.Is(err, follow.ErrStopped):
		a.Report("%s; to continue: harness resume %s%s", err, f.Run, f.Target.Words(a))
		return exit.Parked, nil
	case errors.Is(err, follow.ErrLeft):
		a.Report("%s", console.Message(err))
		a.Report("to continue: harness resume %s%s", f.Run, f.Target.Words(a))
		f.Session = nil // leave without waiting
		return exit.Parked, nil
	case errors.Is(err, follow.ErrStored):
		a.Report("%s: data directory %s cannot be written", err, f.Target.Data)
		return exit.Parked, nil
	case errors.Is(err, follow.ErrUnread):
		return exit.Error, nil
	case err != nil:
		return exit.Error, err
	}
	for id, reason := range outcome.Rejected {
		if id == f.Resume && outcome.Moved {
			continue // another input had resumed it before
		}
		a.Report("the run rejected the input: %s", reason)
	}
	result, err := backend.Whole(ctx, f.Session.Client, f.Target.Namespace, f.Run, outcome.Result)
	if err != nil {
		a.Report("the whole answer cannot be read: %s", console.Message(err))
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
func (f *Follower) print(a *console.Console, text narrator, r *harnessv1.HarnessResult) error {
	var line []byte
	var err error
	switch f.Output {
	case "json":
		line, err = eventjson.Result(f.Run, r)
	case "jsonl":
		line, err = eventjson.ResultLine(f.Run, r)
	default:
		text.Result(r)
		if r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE && r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_STALLED {
			return nil // the last text is no answer
		}
		answer := f.unseen(a, text, r)
		if answer == "" {
			return nil
		}
		return console.EmitRaw(a.Out, []byte(f.rendered(a, answer)))
	}
	if err != nil {
		return err
	}
	return console.Emit(a.Out, line)
}

// unseen returns the part of the answer that is not already on the same screen.
func (f *Follower) unseen(a *console.Console, text narrator, r *harnessv1.HarnessResult) string {
	whole, said := render.Answer(r), strings.TrimSpace(text.Shown())
	if !console.IsTerminal(a.Out) || !console.IsTerminal(a.Err) {
		return whole
	}
	if rest, found := strings.CutPrefix(whole, said); found && said != "" && (rest == "" || f.laidOut(a, a.Err)) {
		return strings.TrimSpace(rest)
	}
	return whole
}
