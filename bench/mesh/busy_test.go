package mesh

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// What a run does when something happens to it.
const (
	streaming = "model"   // the model has its request and has not answered yet
	commands  = "command" // a command runs
)

var doings = []string{commands, streaming}

// busyRun is a run that does one thing until something happens to it.
type busyRun struct {
	run   runlog.Run
	doing string
	// attempt and worker are of the newest claim.
	attempt uint32
	worker  string
}

// occupy starts n runs and waits until each of them is doing that.
func (f *fleet) occupy(doing string, n int) []*busyRun {
	f.b.Helper()
	dir := workspace(f.b)
	file := script(f.b, "waits", 1, func(int) string { return "{delay: 1h, text: Late.}" })
	if doing == commands {
		file = script(f.b, "sleeps", 1, func(int) string {
			return "{text: This takes a while., calls: [{name: run_command, arguments: {command: 'echo > begun-$$; exec sleep 3600'}}]}"
		})
	}
	var all []*busyRun
	for _, run := range f.start(n, spec(file, dir)) {
		all = append(all, &busyRun{run: run, doing: doing})
	}
	if doing == commands {
		meshtest.Eventually(f.b, "the commands begin", func() bool {
			begun, err := filepath.Glob(filepath.Join(dir, "begun-*"))
			must(f.b, err)
			return len(begun) == n
		})
	}
	for _, o := range all {
		meshtest.Eventually(f.b, "the turn is claimed", func() bool { return f.claimed(o) })
	}
	return all
}

// claimed reports whether there is a newer claim of the run's turn than the known one.
func (f *fleet) claimed(o *busyRun) bool {
	_, ok := f.claim(o)
	return ok
}

// claim returns the newest claim of the run's turn; ok if it was not known.
func (f *fleet) claim(o *busyRun) (e runlog.Entry, ok bool) {
	f.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	view, err := f.m.Log().View(ctx, o.run, 0)
	must(f.b, err)
	for e = view.Newest; e.Record.GetJournal() != nil; {
		if started := e.Record.GetJournal().GetTurnStarted(); started != nil {
			if started.GetAttempt() <= o.attempt {
				return e, false
			}
			o.attempt, o.worker = started.GetAttempt(), e.Record.GetWriter().GetInstance()
			return e, true
		}
		e, err = f.m.Log().Read(ctx, o.run, e.Record.GetPrevSequence())
		must(f.b, err)
	}
	return e, false
}

// of reports whether a process wrote the run's newest claim.
func (o *busyRun) of(p *meshtest.Process) bool {
	return strings.Contains(o.worker, fmt.Sprintf("-%d-", p.PID()))
}

// watch follows a run's events.
func (f *fleet) watch(ctx context.Context, o *busyRun) harnessv1.GatewayService_WatchRunClient {
	f.b.Helper()
	stream, err := f.m.Client().WatchRun(ctx, &harnessv1.WatchRunRequest{Namespace: o.run.Namespace, RunId: o.run.ID, Until: harnessv1.WatchUntil_WATCH_UNTIL_END})
	must(f.b, err)
	return stream
}
