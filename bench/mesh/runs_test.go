package mesh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const (
	concurrent = 64 // runs
	warm       = 3  // turns of each run before the count starts
	fileSize   = 1200
	endless    = 1_000_000
)

// script writes a scripted model with n entries.
func script(b *testing.B, name string, n int, entry func(i int) string) string {
	b.Helper()
	var yaml strings.Builder
	yaml.WriteString("turns:\n")
	for i := range n {
		yaml.WriteString("  - " + entry(i) + "\n")
	}
	path := filepath.Join(scratch, name+".yaml")
	must(b, os.WriteFile(path, []byte(yaml.String()), 0o600))
	return path
}

// workspace returns a folder with a file a.txt.
func workspace(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	must(b, os.WriteFile(filepath.Join(dir, "a.txt"), []byte(strings.Repeat("what the file says\n", fileSize/19)), 0o600))
	return dir
}

// reads returns a script that reads a file in each turn; the model takes delay.
func reads(b *testing.B, delay time.Duration) string {
	const turns = 5000
	return script(b, "reads-"+delay.String(), turns, func(int) string {
		return fmt.Sprintf("{delay: %s, text: Looking., calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input_tokens: 900, output_tokens: 20}}", delay)
	})
}

// talks returns a script that never calls a tool.
func talks(b *testing.B) string {
	return script(b, "talks", 1, func(int) string { return "{text: Thinking.}" })
}

// spec returns the spec of a run that continues until it is cancelled.
func spec(script, workspace string) *harnessv1.RunSpec {
	long := durationpb.New(time.Hour)
	return &harnessv1.RunSpec{
		Goal:      content.Inline("Do what the script says."),
		Agent:     &harnessv1.AgentSpec{Model: "script:" + script},
		Workspace: workspace,
		Config: &harnessv1.LoopConfig{
			Stop:         &harnessv1.StopConfig{MaxTurns: proto.Uint32(endless)},
			Continuation: &harnessv1.ContinuationConfig{MaxPrompts: proto.Uint32(endless)},
			Budgets:      &harnessv1.Budgets{ToolCalls: proto.Uint32(endless)},
			Model:        &harnessv1.ModelConfig{IdleTimeout: long},
			Tools:        &harnessv1.ToolConfig{Timeout: long, Yolo: proto.Bool(true)},
			// It repeats itself on purpose.
			Stall:    &harnessv1.StallConfig{Enabled: proto.Bool(false)},
			DoomLoop: &harnessv1.DoomLoopConfig{Enabled: proto.Bool(false)},
		},
	}
}

// fleet is a number of runs in a separate namespace.
type fleet struct {
	b         *testing.B
	m         *meshtest.Mesh
	namespace string
	runs      []runlog.Run
}

var fleets atomic.Uint64

func newFleet(b *testing.B, m *meshtest.Mesh) *fleet {
	return &fleet{b: b, m: m, namespace: fmt.Sprintf("fleet%d", fleets.Add(1))}
}

// bounded returns a context that ends a hang.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), waittest.Patience)
}

// start starts n more runs.
func (f *fleet) start(n int, spec *harnessv1.RunSpec) []runlog.Run {
	f.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	from := len(f.runs)
	for i := range n {
		run := runlog.Run{Namespace: f.namespace, ID: fmt.Sprintf("r%03d", from+i)}
		f.runs = append(f.runs, run)
		g.Go(func() error {
			_, err := f.m.Client().StartRun(ctx, &harnessv1.StartRunRequest{Namespace: run.Namespace, RunId: run.ID, Spec: spec})
			return err
		})
	}
	must(f.b, g.Wait())
	return f.runs[from:]
}

// list returns the runs as the gateway lists them.
func (f *fleet) list(statuses ...harnessv1.RunStatus) []*harnessv1.Run {
	f.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	r, err := f.m.Client().ListRuns(ctx, &harnessv1.ListRunsRequest{Namespace: f.namespace, Statuses: statuses, PageSize: 1000})
	must(f.b, err)
	return r.GetRuns()
}

// warmUp waits until every run has made some turns.
func (f *fleet) warmUp() {
	f.b.Helper()
	waittest.Eventually(f.b, "every run makes turns", func() bool {
		listed := f.list()
		for _, r := range listed {
			if r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING {
				f.b.Fatalf("%s ended: %v", r.GetRunId(), r)
			}
			if r.GetTurnCount() < warm {
				return false
			}
		}
		return len(listed) == len(f.runs)
	})
}

// turns returns how many turns each run has made.
func (f *fleet) turns() map[string]uint32 {
	f.b.Helper()
	turns := map[string]uint32{}
	for _, r := range f.list() {
		turns[r.GetRunId()] = r.GetTurnCount()
	}
	return turns
}

// cancel ends all runs and waits for that.
func (f *fleet) cancel() {
	f.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, run := range f.runs {
		g.Go(func() error {
			_, err := f.m.Client().CancelRun(ctx, &harnessv1.CancelRunRequest{Namespace: run.Namespace, RunId: run.ID})
			return err
		})
	}
	must(f.b, g.Wait())
	waittest.Eventually(f.b, "every run is cancelled", func() bool {
		return len(f.list(harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.RunStatus_RUN_STATUS_PARKED)) == 0
	})
}

// logs returns the records of each run that were committed in [from, to), oldest first.
func (f *fleet) logs(from, to time.Time) [][]runlog.Entry {
	f.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	all := make([][]runlog.Entry, len(f.runs))
	for i, run := range f.runs {
		g.Go(func() error {
			view, err := f.m.Log().View(ctx, run, 0)
			if err != nil {
				return err
			}
			var newestFirst []runlog.Entry
			for e := view.Newest; !committed(e).Before(from); {
				if committed(e).Before(to) {
					newestFirst = append(newestFirst, e)
				}
				if e.Record.GetPrevSequence() == 0 {
					break
				}
				if e, err = f.m.Log().Read(ctx, run, e.Record.GetPrevSequence()); err != nil {
					return err
				}
			}
			for j := len(newestFirst) - 1; j >= 0; j-- {
				all[i] = append(all[i], newestFirst[j])
			}
			return nil
		})
	}
	must(f.b, g.Wait())
	return all
}

func committed(e runlog.Entry) time.Time { return e.Record.GetCommitTime().AsTime() }

// closesTurn reports whether a record is the last of a turn.
func closesTurn(e runlog.Entry) bool { return e.Record.GetStep().GetFrom() == "stopdecision" }
