package mesh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// What a run does when something happens to it.
const (
	streaming = "model"   // the model has its request and has not answered yet
	commands  = "command" // a command runs
	waiting   = "summary" // the window is full, and the summary is being made
	verified  = "judge"   // the work is done, and the judge does not answer
)

// doings are those of a turn.
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
	switch doing {
	case waiting:
		return f.fill(n)
	case verified:
		return f.verify(n)
	}
	dir := workspace(f.b)
	file := script(f.b, "waits", 1, func(int) string { return "{delay: 1h, text: Late.}" })
	if doing == commands {
		file = script(f.b, "sleeps", 1, func(int) string {
			return "{text: This takes a while., calls: [{name: run_command, arguments: {command: 'mktemp begun-XXXXXX; exec sleep 3600'}}]}"
		})
	}
	var all []*busyRun
	for _, run := range f.start(n, spec(file, dir)) {
		all = append(all, &busyRun{run: run, doing: doing})
	}
	if doing == commands {
		waittest.Eventually(f.b, "the commands begin", func() bool {
			begun, err := filepath.Glob(filepath.Join(dir, "begun-*"))
			must(f.b, err)
			return len(begun) == n
		})
	}
	for _, o := range all {
		waittest.Eventually(f.b, "the turn is claimed", func() bool { return f.claimed(o) })
	}
	return all
}

// fill starts n runs and waits until each of them waits for a summary.
func (f *fleet) fill(n int) []*busyRun {
	f.b.Helper()
	s := spec(script(f.b, "fills", 20, func(int) string {
		return fmt.Sprintf("{text: '%s', calls: [{name: read_file, arguments: {path: a.txt}}]}", strings.Repeat("On and on it goes. ", 150))
	}), workspace(f.b))
	file := strings.TrimPrefix(s.GetAgent().GetModel(), "script:")
	text, err := os.ReadFile(file)
	must(f.b, err)
	must(f.b, os.WriteFile(file, append(text, "jobs:\n  summarize:\n    - {delay: 1h, text: Late.}\n"...), 0o600))
	s.Config.Context = &harnessv1.ContextConfig{
		MaxInputTokens: proto.Uint32(9_000), SoftThreshold: proto.Float64(0.79), BlockingThreshold: proto.Float64(0.8), Target: proto.Float64(0.6),
		RecentMessages: proto.Uint32(4), SummaryWait: durationpb.New(time.Hour),
		Strategies: []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE},
	}
	var all []*busyRun
	for _, run := range f.start(n, s) {
		all = append(all, &busyRun{run: run, doing: waiting})
	}
	for _, o := range all {
		waittest.Eventually(f.b, "the run waits for a summary", func() bool {
			ctx, cancel := bounded()
			defer cancel()
			view, err := f.m.Log().View(ctx, o.run, 0)
			must(f.b, err)
			step := view.Newest.Record.GetStep()
			return step.GetFrom() == workflow.Compaction && step.GetTo() == workflow.Compaction
		})
	}
	return all
}

// verify starts n runs and waits until each of them waits for a judge: once its work is done, or before it if all
// inference workers call one.
func (f *fleet) verify(n int) []*busyRun {
	f.b.Helper()
	s := spec(script(f.b, "done", 1, func(int) string { return "{text: Done., calls: [{name: work_complete, arguments: {summary: done}}]}" }), workspace(f.b))
	file := strings.TrimPrefix(s.GetAgent().GetModel(), "script:")
	text, err := os.ReadFile(file)
	must(f.b, err)
	must(f.b, os.WriteFile(file, append(text, "jobs:\n  complexity:\n    - {answer: {level: MEDIUM, reason: one}}\n  verify:\n    - {delay: 1h, text: Late.}\n"...), 0o600))
	s.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true), Timeout: durationpb.New(10 * time.Minute)}
	s.Task = &harnessv1.Task{Kind: "chat"}
	var all []*busyRun
	for _, run := range f.start(n, s) {
		all = append(all, &busyRun{run: run, doing: verified})
	}
	waittest.Eventually(f.b, "each run has a job", func() bool {
		ctx, cancel := bounded()
		defer cancel()
		_, consumers, err := f.m.Log().Status(ctx)
		must(f.b, err)
		for _, c := range consumers {
			if c.Name == workflow.Inference {
				return c.Pending+c.AckPending >= uint64(n)
			}
		}
		return false
	})
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
