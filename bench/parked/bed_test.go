package parked

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// concurrent is how many runs are started at the same time.
const concurrent = 64

// script calls a command that needs an approval, and then is done.
const script = `turns:
  - {text: "I have to run a command for that.", calls: [{name: run_command, arguments: {command: "echo answered >> answers"}}], usage: {input_tokens: 900, output_tokens: 20}}
  - {calls: [{name: work_complete, arguments: {summary: answered}}]}
`

// bed is a mesh, one process per role and one NATS server with a sync interval, whose
// runs all work in one directory.
type bed struct {
	tb        testing.TB
	m         *meshtest.Mesh
	js        jetstream.JetStream
	nc        *nats.Conn
	workspace string
	script    string
	profile   string // address of the NATS server's profiler
}

func newBed(tb testing.TB) *bed {
	tb.Helper()
	var err error
	if bin, err = meshtest.Build(); err != nil {
		tb.Fatal(err)
	}
	b := &bed{tb: tb, workspace: tb.TempDir()}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	b.profile = free.Addr().String()
	b.must(free.Close())
	_, port, err := net.SplitHostPort(b.profile)
	b.must(err)
	b.m = meshtest.Start(tb, bin, meshtest.Config{NATS: meshtest.NATSConfig{Extra: "prof_port: " + port}})
	b.script = b.m.Write("script.yaml", script)
	b.nc, err = nats.Connect(b.m.Bus.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	b.must(err)
	tb.Cleanup(b.nc.Close)
	b.js, err = jetstream.New(b.nc)
	b.must(err)
	return b
}

func (b *bed) must(err error) {
	b.tb.Helper()
	if err != nil {
		b.tb.Fatal(err)
	}
}

// bounded returns a context that ends a hang.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), waittest.Patience)
}

// restart kills every process with SIGKILL, including the NATS server, and restarts
// them all. It returns when all are ready and no work is left, with the time until they
// were ready. again is the number of steps that the server delivers again, because it
// was killed before it had written their acknowledgements.
func (b *bed) restart() (took time.Duration, again uint64) {
	b.tb.Helper()
	b.m.Bus.Kill(0)
	for _, role := range meshtest.Roles {
		b.m.Process(role).Kill()
	}
	began := time.Now()
	b.m.Bus.Restart(0)
	b.m.Bus.AwaitReady(0)
	waittest.Eventually(b.tb, "the bus says what it has to deliver", func() (ok bool) {
		again, ok = b.undelivered()
		return ok
	})
	for _, role := range meshtest.Roles {
		b.m.Start(role)
	}
	for _, role := range meshtest.Roles {
		b.m.AwaitReady(role)
	}
	took = time.Since(began)
	b.quiet()
	return took, again
}

// restartUntilQuiet restarts everything until no step is delivered again. A crash
// repeats the work of the last tenth of a second before it, however many runs there
// are, and a process that has worked cannot be compared with one that has not.
func (b *bed) restartUntilQuiet() (took time.Duration) {
	b.tb.Helper()
	waittest.Eventually(b.tb, "everything is written down", func() bool {
		var again uint64
		took, again = b.restart()
		return again == 0
	})
	return took
}

// quiet waits until no consumer has anything left to deliver or to be acknowledged:
// nothing changes from then on without a request.
func (b *bed) quiet() {
	b.tb.Helper()
	waittest.Eventually(b.tb, "nothing is left to be delivered", func() bool {
		left, ok := b.undelivered()
		return ok && left == 0
	})
}

// undelivered returns the number of messages that the durable consumers have to deliver, first or
// again; ok is false if the bus does not report it.
func (b *bed) undelivered() (left uint64, ok bool) {
	ctx, cancel := bounded()
	defer cancel()
	for _, name := range []string{"RUNS_0", "TIMERS_0"} {
		stream, err := b.js.Stream(ctx, name)
		if err != nil {
			return 0, false
		}
		list := stream.ListConsumers(ctx)
		for info := range list.Info() {
			if info.Config.Durable != "" {
				left += info.NumPending + uint64(info.NumAckPending)
			}
		}
		if list.Err() != nil {
			return 0, false
		}
	}
	return left, true
}

// park starts n runs and returns when all of them wait for an approval.
func (b *bed) park(n int) {
	b.tb.Helper()
	b.parkAll(n, n, b.asking)
}

// asking returns the spec of a run with a command that asks.
func (b *bed) asking(i int) *harnessv1.RunSpec {
	return &harnessv1.RunSpec{
		Agent: &harnessv1.AgentSpec{Model: "script:" + b.script}, Workspace: b.workspace,
		Goal: content.Inline(fmt.Sprintf("Run the command of task %d when it is allowed.", i)),
		// With network commands ask at every level of confinement.
		Config: &harnessv1.LoopConfig{
			Sandbox: &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL}},
		},
	}
}

// parkAll starts n runs and returns when they and all below them, total runs, are parked.
func (b *bed) parkAll(n, total int, spec func(i int) *harnessv1.RunSpec) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience+time.Duration(total)*100*time.Millisecond)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	watch, err := b.m.Client().WatchRuns(ctx, &harnessv1.WatchRunsRequest{ChangesOnly: true})
	b.must(err)
	if first, err := watch.Recv(); err != nil || first.GetCaughtUp() == nil {
		b.tb.Fatalf("watch runs: %v, %v", first, err)
	}
	places := make(chan struct{}, concurrent)
	g.Go(func() error {
		for parked := map[string]bool{}; len(parked) < total; {
			told, err := watch.Recv()
			if err != nil {
				return err
			}
			switch run := told.GetRun(); run.GetStatus() {
			case harnessv1.RunStatus_RUN_STATUS_RUNNING:
			case harnessv1.RunStatus_RUN_STATUS_PARKED:
				if !parked[run.GetRunId()] {
					parked[run.GetRunId()] = true
					if !strings.HasPrefix(run.GetRunId(), "a-") {
						<-places // a run that was started here
					}
				}
			default:
				return fmt.Errorf("a run did not park: %v", run)
			}
		}
		return nil
	})
	var starting errgroup.Group
	for i := range n {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			b.tb.Fatalf("start run %d: %v", i, errors.Join(context.Cause(ctx), g.Wait()))
		}
		starting.Go(func() error {
			_, err := b.m.Client().StartRun(ctx, &harnessv1.StartRunRequest{
				RequestId: fmt.Sprintf("parked-%d", i), Spec: spec(i),
			})
			return err
		})
	}
	b.must(starting.Wait())
	b.must(g.Wait())
	b.quiet()
}

// listing is a run as the gateway lists it.
type listing struct {
	status  harnessv1.RunStatus
	version uint64
}

// list returns all runs, by id.
func (b *bed) list() map[string]listing {
	b.tb.Helper()
	ctx, cancel := bounded()
	defer cancel()
	all := map[string]listing{}
	for request := (&harnessv1.ListRunsRequest{PageSize: 1000}); ; {
		page, err := b.m.Client().ListRuns(ctx, request)
		b.must(err)
		for _, r := range page.GetRuns() {
			all[r.GetRunId()] = listing{r.GetStatus(), r.GetVersion()}
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return all
		}
	}
}

// last returns the sequence of the newest message in the stream of all runs.
func (b *bed) last() uint64 {
	b.tb.Helper()
	ctx, cancel := bounded()
	defer cancel()
	stream, err := b.js.Stream(ctx, "RUNS_0")
	b.must(err)
	return stream.CachedInfo().State.LastSeq
}

// answers returns how many commands have run.
func (b *bed) answers() int {
	b.tb.Helper()
	text, err := os.ReadFile(filepath.Join(b.workspace, "answers"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	b.must(err)
	return strings.Count(string(text), "answered")
}

// answer approves the call of one run, follows it to its end, and fails the test unless
// exactly that run has changed: in the list, in the stream, and by its command. before
// is the list when the runs were parked. It returns the time until the run resumed, and
// until it had ended.
func (b *bed) answer(before map[string]listing, id string) (resumed, ended time.Duration) {
	b.tb.Helper()
	if got := b.list(); !maps.Equal(got, before) {
		b.tb.Fatalf("after the restart %d runs are listed, or differ from the %d before it", len(got), len(before))
	}
	last, answered := b.last(), b.answers()
	ctx, cancel := bounded()
	defer cancel()
	pending, err := b.m.Client().ListPending(ctx, &harnessv1.ListPendingRequest{RunId: id})
	b.must(err)
	if n := len(pending.GetPending()); n != 1 {
		b.tb.Fatalf("run %s waits for %d calls", id, n)
	}
	watch, err := b.m.Client().WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: id, AfterVersion: before[id].version})
	b.must(err)
	if _, err := watch.Recv(); err != nil { // it is attached
		b.tb.Fatal(err)
	}
	began := time.Now()
	_, err = b.m.Client().SendInput(ctx, &harnessv1.SendInputRequest{RunId: id, Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
		CallId: pending.GetPending()[0].GetCall().GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
	}}})
	b.must(err)
	for {
		told, err := watch.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		b.must(err)
		if told.GetUpdate().GetEvent() != nil && resumed == 0 {
			resumed = time.Since(began)
		}
		if r := told.GetUpdate().GetResult(); r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE {
			ended = time.Since(began)
		}
	}
	if resumed == 0 || ended == 0 {
		b.tb.Fatalf("run %s did not continue to its end", id)
	}
	b.quiet()
	b.onlyMoved(before, id, last)
	if n := b.answers() - answered; n != 1 {
		b.tb.Fatalf("one run got an answer, and %d commands ran", n)
	}
	return resumed, ended
}

// onlyMoved fails the test unless exactly one of all runs has changed since last was
// the newest sequence.
func (b *bed) onlyMoved(before map[string]listing, id string, last uint64) {
	b.tb.Helper()
	ctx, cancel := bounded()
	defer cancel()
	after := b.list()
	for run, was := range before {
		if is := after[run]; run != id && is != was {
			b.tb.Errorf("%s got an answer, and %s changed from %v to %v", id, run, was, is)
		}
	}
	if is := after[id]; is.status != harnessv1.RunStatus_RUN_STATUS_DONE || is.version <= before[id].version || len(after) != len(before) {
		b.tb.Errorf("%s got an answer and is %v; %d runs are listed, %d were", id, is, len(after), len(before))
	}
	run := runlog.Run{Namespace: "default", ID: id}
	messages := uint64(0)
	for _, e := range b.m.Entries(run) {
		if e.Sequence > last {
			messages++
		}
	}
	newest, err := b.m.Log().LastInbox(ctx, run)
	b.must(err)
	items, err := b.m.Log().Inbox(ctx, run, last, newest)
	b.must(err)
	messages += uint64(len(items))
	if grown := b.last() - last; grown != messages {
		b.tb.Errorf("%s got an answer: the stream grew by %d messages, of which it has %d", id, grown, messages)
	}
}
