package follower

import (
	"context"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// hints prints what can be done with a parked or ended run.
func (f *Follower) hints(ctx context.Context, a *console.Console, text narrator, r *harnessv1.HarnessResult) {
	words := f.Target.Words(a)
	switch r.GetStatus() {
	case harnessv1.RunStatus_RUN_STATUS_PARKED:
		f.waits(a, text, r)
		lead := "to continue"
		if len(r.GetPending()) > 0 {
			if !f.Session.Local {
				return
			}
			lead = "and then"
		}
		a.Report("%s: harness resume %s%s%s", lead, f.Run, target.Extension(ctx, f.Session, f.Target.Namespace, f.Run, r), words)
	default:
		if purpose, command := target.Next(f.Run, r, words, ""); command != "" {
			a.Report("%s: %s", purpose, command)
		}
	}
}

// waits prints what a parked run waits for: blocks of lines for people, otherwise one
// line for each call.
func (f *Follower) waits(a *console.Console, text narrator, r *harnessv1.HarnessResult) {
	style, words, now := a.Style(a.Err), f.Target.Words(a), time.Now()
	for _, p := range r.GetPending() {
		if p.GetKind() == runstate.KindAgent {
			continue // its sub-agent has the answer
		}
		how := target.Answering(target.RunOf(f.Run, p, r.GetPending()), p, words)
		if text == nil && p.GetRunId() != "" {
			a.Report("call %s (%s) of run %s waits (%s): %s", p.GetCallId(), render.Short(p.GetTool(), 64), p.GetRunId(), render.Short(p.GetKind(), 64), how)
			continue
		}
		if text == nil {
			a.Report("call %s (%s) waits (%s): %s", p.GetCallId(), render.Short(p.GetTool(), 64), render.Short(p.GetKind(), 64), how)
			continue
		}
		text.Lines("")
		text.Lines(style.PendingLines(render.PendingCall{Call: p, Run: p.GetRunId(), Command: how, Or: target.Alternatives(p)}, now)...)
	}
	if wakes := style.WakeLine(r, now); wakes != "" {
		if f.Session.Local {
			wakes += ", once a process works on it"
		}
		a.Report("the run %s", wakes)
	}
}
